"""Use fmnes with other libraries; each needs an optional dependency (an extra) of fmnes.

`optuna` has a sampler, `scipy` a method for SciPy's minimize. `torch` makes objectives from PyTorch
modules, `gymnasium` from environments. `coco` runs the benchmark suites of COCO: ``fmnes coco`` on
the command line.
"""
