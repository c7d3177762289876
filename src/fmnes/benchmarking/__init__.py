"""Running many trials of many solvers: what `fmnes paper`, `fmnes coco` and benchmarks/ share.

- `packages`: solvers of other packages; `ask_tell`: solvers of a user; `loop`: where they run;
- `processes`: trials in parallel, each with identical results on every x86-64 machine;
- `log`: a file of finished trials that a later run continues;
- `statistics`: evaluations over the success rate, with error bars and tests of differences;
- `options`: arguments that the commands have in common.
"""
