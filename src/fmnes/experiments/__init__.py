"""The paper's experiments, from raw trials to figures, and those that it leaves out.

- `protocol`: what is run, the problems, budgets and population sizes of section IV;
- `solvers`: who runs it: our methods, `packages` that bear witness, users' own (`ask_tell`), and
  our method with the `older_h`; `names` has all of them in words;
- `results`: the rows, an append-only file, one line a trial;
- `runner`: trials in parallel `processes`, killed and resumed at will, and run again to verify;
- `statistics`: the paper's metric, its error bars, and tests of differences;
- `claims`: each claim of the paper, with the numbers and a verdict computed from them. They are
  made of `checks`, chosen in `readings`; `rates` has what is computed and not run;
- `agreement`: whether two texts of one method need the same evaluations;
- `figures`: the paper's figures, redrawn; `drawing` and `styles` are how;
- `report`: one page of all that, with `tables` and what was run of it (`coverage`);
- `commands`: `fmnes paper` on the command line; `extras` says what has to be installed.
"""
