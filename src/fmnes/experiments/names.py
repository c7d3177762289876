"""Solvers as a reader knows them."""

from fmnes.experiments import protocol
from fmnes.experiments.protocol import Solver

NAMES = {
    protocol.SAFE: "CR-FM-NES (safe)",
    protocol.PAPER: "CR-FM-NES (paper)",
    protocol.AUTHORS: "the authors' package",
    protocol.FM_NES: "FM-NES",
    protocol.R1_NES: "R1-NES",
    protocol.VD_CMA: "VD-CMA",
    protocol.SEP_CMA: "Sep-CMA",
    protocol.VD_PYCMA: "pycma's VD-CMA",
    protocol.VD_FED: "VD-CMA with pycma's rates",
    protocol.SEP_CMAES: "cmaes' SepCMA",
    protocol.SEP_PYCMA: "pycma's diagonal CMA-ES",
    protocol.SEP_FED_CMAES: "Sep-CMA with cmaes' rates",
    protocol.SEP_FED_PYCMA: "Sep-CMA with pycma's rates",
    protocol.OLDER_H: "CR-FM-NES with the older H",
    protocol.NO_WEIGHTS: "without distance weights",
    protocol.ONE_RATE: "with one learning rate of sigma",
    protocol.NO_PHASES: "with neither phases nor distance weights",
    protocol.NO_RANK_ONE: "without the rank-one update",
    protocol.NONE_OF_THESE: "with none of the three",
}


def name_of(solver: Solver) -> str:
    """As a reader knows it."""
    method, variant = solver
    known = f"CR-FM-NES, {variant}" if method == "cr-fm-nes" else method
    return NAMES.get(solver, known)
