"""The paper's experiments, from raw trials to figures, and those that it leaves out.

- `protocol`: what is run, the problems, budgets and population sizes of section IV;
- `solvers`: who runs it, our methods and the packages that bear witness;
- `results`: the rows, an append-only file, one line a trial;
- `runner`: trials in parallel processes, killed and resumed at will, and run again to verify;
- `statistics`: the paper's metric, its error bars, and tests of differences;
- `claims`: each claim of the paper, with the numbers and a verdict computed from them;
- `figures`: the paper's figures, redrawn;
- `report`: one page of all that;
- `commands`: `fmnes paper` on the command line.
"""
