"""The experiments of the CR-FM-NES paper, from trials to a page of figures and verdicts.

- `protocol`: the trials; `solvers` runs one of them;
- `runner`: all of them in parallel, whose rows (`results`) go to a log;
- `cases`: the rows by case and solver;
- `claims`: the paper's claims with their checks; `rates` has formulas;
- `verdicts`: what the rows say about claims, and whether two implementations agree;
- `report`: the page, made of `figures` (`drawing`) and `tables`;
- `commands`: `fmnes paper`.

What is not about the paper is in `fmnes.benchmarking`.
"""
