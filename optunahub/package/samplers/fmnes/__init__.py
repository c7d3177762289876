"""FmnesSampler, as the package fmnes has it."""

from fmnes.integrations.optuna import FmnesSampler

__all__ = ["FmnesSampler"]
