"""The experiments of the CR-FM-NES paper, from trials to a page of figures and verdicts.

- `protocol`: the trials; `solvers` runs one, with `packages` of other authors, a user's solvers
  (`ask_tell`), and the `loop` that they share;
- `runner`: trials in parallel `processes`, whose rows (`results`) go to a `log`;
- `statistics`: the paper's metric, its error bars, and tests of differences;
- `claims`: the paper's claims with their checks; `rates` has formulas;
- `verdicts`: what the rows say about claims, and whether two implementations agree;
- `report`: the page, made of `figures` (`drawing`) and `tables`;
- `commands`: `fmnes paper`; it shares `options` with `fmnes coco`.
"""
