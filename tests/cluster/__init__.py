"""A package, because benchmarks/cluster.py would hide a folder of the same name."""
