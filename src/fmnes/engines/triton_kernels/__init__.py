"""Triton kernels of CR-FM-NES: passes over the draws, and passes over vectors.

The equations are those of `algorithms.cr_fm_nes` and `algorithms._vd_gaussian`, in their notation;
these files say only in which order a GPU computes them. The draws of a tile are made from their
addresses, or loaded if they are stored. A kernel with sums writes one partial sum for each of its
programs, and a kernel of one program adds them, always in the same order. The number of programs
depends on d alone, so equal GPUs give equal bits.

A generation runs the kernels of `ranking`, `weights`, `weighted_sums` and `step`, in this order,
and then those of `figures` and `draws` for the next generation; `candidates` writes its candidates.
Numbers that belong to a generation stand in one float64 array, at the places that `names` lists.
The kernels of the method auto are in the folder `auto`.
"""

from fmnes.engines.triton_kernels import auto
from fmnes.engines.triton_kernels.candidates import keep, write_row, write_rows
from fmnes.engines.triton_kernels.draws import add_row_sums, row_sums
from fmnes.engines.triton_kernels.figures import KINDS, prepare, prepared, report, settle
from fmnes.engines.triton_kernels.names import (
    CONSTANTS,
    FIGURES,
    NORM_Z2,
    NUMBERS,
    PAIRS,
    RATES,
    SIGMA,
)
from fmnes.engines.triton_kernels.ranking import rank, survey
from fmnes.engines.triton_kernels.step import limit_step, move, normalise, solve, step_size
from fmnes.engines.triton_kernels.weighted_sums import sums
from fmnes.engines.triton_kernels.weights import decide, path_length, weigh

__all__ = [
    "CONSTANTS",
    "FIGURES",
    "KINDS",
    "NORM_Z2",
    "NUMBERS",
    "PAIRS",
    "RATES",
    "SIGMA",
    "add_row_sums",
    "auto",
    "decide",
    "keep",
    "limit_step",
    "move",
    "normalise",
    "path_length",
    "prepare",
    "prepared",
    "rank",
    "report",
    "row_sums",
    "settle",
    "solve",
    "step_size",
    "sums",
    "survey",
    "weigh",
    "write_row",
    "write_rows",
]
