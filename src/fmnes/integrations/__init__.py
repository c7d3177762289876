"""Other people's tools, driven with our methods; each needs an extra of its own.

`optuna` has a sampler, `scipy` a method for SciPy's minimize, `torch` and `gymnasium` make
objectives of modules and of environments. `coco` runs the benchmark suites of COCO: ``fmnes coco``
on the command line.
"""
