"""The leaderboard: optimizers of many packages on the same problems with the same budgets.

    python benchmarks/leaderboard list                       what there is, and what is stored
    python benchmarks/leaderboard run --suite real --solver auto "pycma VD" --trials 3
    python benchmarks/leaderboard report                     docs/leaderboard.md, picture, HTML
    python benchmarks/leaderboard verify --rows 5            runs stored rows again

A trial is a problem, a solver, a seed and a budget of evaluations (`trials`). It becomes one line
of benchmarks/results/leaderboard/SUITE.jsonl (`rows`). A suite is a file of its own (`coco`,
`rotated`, `lsgo`, `real`), and so are the solvers (`opponents`). `statistics` computes what
`report` shows. If a run is killed, repeat the command: it resumes where it stopped.
"""
