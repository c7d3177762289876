"""The learning rates of the covariance in CR-FM-NES and FM-NES."""

import numpy as np

from fmnes.algorithms import _phases as phases
from fmnes.algorithms import cr_fm_nes, dx_nes_ic, fm_nes


def eta_B(dim: int, popsize: int) -> tuple[float, float]:
    """The fitted rate of v and D, and the rate of FM-NES's matrix in the movement phase.

    The movement phase has the largest of FM-NES's three rates.
    """
    lam, movement = np.asarray(float(popsize)), np.asarray(phases.MOVEMENT)
    fitted = cr_fm_nes.fitted_eta_B(np, dim, lam)
    return float(fitted), float(dx_nes_ic.published_eta_B(np, dim, movement, lam))


def c_1(dim: int, popsize: int) -> tuple[float, float]:
    """The rates of the rank-one updates of both methods, as published."""
    paper = cr_fm_nes.CRFMNES(variant="paper")
    return cr_fm_nes.params(dim, popsize, paper).c_1, fm_nes.params(dim, popsize).c_1
