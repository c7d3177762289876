"""Other people's tools, driven with our methods; each needs an extra of its own.

`coco` runs the benchmark suites of COCO: ``fmnes coco`` on the command line.
"""
