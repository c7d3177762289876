"""FmnesSampler of the package fmnes."""

from fmnes.integrations.optuna import FmnesSampler

__all__ = ["FmnesSampler"]
