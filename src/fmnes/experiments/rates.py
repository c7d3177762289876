"""The learning rates of the covariance in CR-FM-NES and FM-NES, by their formulas."""

import numpy as np

from fmnes.algorithms import _phases as phases
from fmnes.algorithms import cr_fm_nes, dx_nes_ic, fm_nes


def eta_B(dim: int, popsize: int) -> tuple[float, float]:
    """That of v and D as fitted, and that of FM-NES's matrix in the movement phase, its largest."""
    lam, movement = np.asarray(float(popsize)), np.asarray(phases.MOVEMENT)
    fitted = cr_fm_nes.fitted_eta_B(np, dim, lam)
    return float(fitted), float(dx_nes_ic.published_eta_B(np, dim, movement, lam))


def c_1(dim: int, popsize: int) -> tuple[float, float]:
    """Those of both rank-one updates."""
    paper = cr_fm_nes.CRFMNES(variant="paper")
    return cr_fm_nes.params(dim, popsize, paper).c_1, fm_nes.params(dim, popsize).c_1
