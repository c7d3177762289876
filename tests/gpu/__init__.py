"""A package, because benchmarks/gpu.py would hide a folder of the same name."""
