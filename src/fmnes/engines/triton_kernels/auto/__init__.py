"""Triton kernels of auto, until a full matrix takes over; some are those of CR-FM-NES.

The equations are those of docs/methods/auto.md; the order is that of the compiled engine
(native/auto_*.hpp). Passes over the draws and over vectors run in many programs; what is of the
size of the population or of the axes runs in one, in float64.

A generation ranks the values (`ranking`, `weights` of CR-FM-NES), and then runs the kernels of
`weights`, `draws`, `gradient`, `steps_of_axes`, `axes`, `coming_and_going` and `figures`. Those
that a generation does not need find that in a number of the device, and do nothing: what is
launched is always the same.
"""

from fmnes.engines.triton_kernels.auto.axes import gram, largest_entries, set_axes, turn
from fmnes.engines.triton_kernels.auto.candidates import keep, write_rows
from fmnes.engines.triton_kernels.auto.coming_and_going import (
    drop_axes,
    hand_over,
    products,
    scout_sizes,
    wake,
)
from fmnes.engines.triton_kernels.auto.draws import row_products, sums
from fmnes.engines.triton_kernels.auto.figures import KINDS, finish, report
from fmnes.engines.triton_kernels.auto.gradient import gradient, steps
from fmnes.engines.triton_kernels.auto.names import (
    CONSTANTS,
    FIGURES,
    HANDED,
    K_KEPT,
    K_OUT,
    K_WITHIN,
    LIVE,
    NUMBERS,
    SCOUTS,
    TABLE,
    WEIGHTS,
    K,
)
from fmnes.engines.triton_kernels.auto.steps_of_axes import step_out, step_within
from fmnes.engines.triton_kernels.auto.weights import decide, judge, moments

__all__ = [
    "CONSTANTS",
    "FIGURES",
    "HANDED",
    "KINDS",
    "K_KEPT",
    "K_OUT",
    "K_WITHIN",
    "LIVE",
    "NUMBERS",
    "SCOUTS",
    "TABLE",
    "WEIGHTS",
    "K",
    "decide",
    "drop_axes",
    "finish",
    "gradient",
    "gram",
    "hand_over",
    "judge",
    "keep",
    "largest_entries",
    "moments",
    "products",
    "report",
    "row_products",
    "scout_sizes",
    "set_axes",
    "step_out",
    "step_within",
    "steps",
    "sums",
    "turn",
    "wake",
    "write_rows",
]  # fmt: skip
