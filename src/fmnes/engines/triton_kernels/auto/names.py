"""The arrays that the kernels of auto share with the host: those of CR-FM-NES, and more places.

A direction is one of the two scouts, the long one first, or an axis, longest first.
"""

import triton.language as tl

from fmnes.algorithms._rates import RateParams
from fmnes.engines.triton_kernels.names import CONSTANTS as SHARED_CONSTANTS
from fmnes.engines.triton_kernels.names import FIGURES as SHARED_FIGURES
from fmnes.engines.triton_kernels.names import NUMBERS as SHARED_NUMBERS
from fmnes.engines.triton_kernels.names import places

SCOUTS = 2

NUMBERS = (
    *SHARED_NUMBERS,
    # of the state
    *("axes", "evidence_long", "evidence_short", "D_signal", "D_noise", "eta"),
    *("signal", "noise", "seen", "gradient", "square", "D_divisor"),
    # of the update: whether there is one, the weights, the rates, and the steps
    *("live", "eta_B", "window", "G_sigma", "mean_g", "w_norm2"),
    *("r_D", "q_norm2", "eta_mean", "next_sigma", "fraction", "ln_D"),
    # how axes come and go: their number after each part of the step, and where they lie
    *("axes_within", "axes_out", "handed", "axes_kept", "current"),
    # and scouts: one over the length of each beside the axes, the place of a new axis and its scout
    *("axes_next", "scale_long", "scale_short", "place", "who"),
    # the base of a straight scout, its factor, and that of the scout which became an axis
    *("base_long", "base_short", "factor_long", "factor_short", "share_long", "share_short"),
)
_OWN = places(NUMBERS)[len(SHARED_NUMBERS) :]
K, EVIDENCE_LONG, EVIDENCE_SHORT, D_SIGNAL, D_NOISE, ETA = _OWN[:6]
SIGNAL, NOISE, SEEN, GRADIENT, SQUARE, D_DIVISOR = _OWN[6:12]
LIVE, ETA_B, WINDOW, G_SIGMA, MEAN_G, W_NORM2 = _OWN[12:18]
R_D, Q_NORM2, ETA_MEAN, NEXT_SIGMA, STEP_FRACTION, LN_D = _OWN[18:24]
K_WITHIN, K_OUT, HANDED, K_KEPT, CURRENT = _OWN[24:29]
K_NEXT, SCALE_LONG, SCALE_SHORT, PLACE, WHO = _OWN[29:34]
BASE_LONG, BASE_SHORT, FACTOR_LONG, FACTOR_SHORT, SHARE_LONG, SHARE_SHORT = _OWN[34:]

CONSTANTS = (
    *SHARED_CONSTANTS[:7],
    *("eps", "tolx", "tiny", "rounding", "mu_eff", "D_rate", "short_rate", "turn_rate"),
    *("scout_rate", "longest", "largest_step", "least_S", "S_near_1", "S_limit", "new_S"),
    *("asleep", "aligned", "drift", "wake", "least_share", "quiet", "clear"),
    *("least_D_rate", "D_window"),
    *(f"noise_{name}" for name in RateParams._fields),
)
_OWN = places(CONSTANTS)[7:]
EPS, TOLX, TINY, ROUNDING, MU_EFF, D_RATE, SHORT_RATE, TURN_RATE = _OWN[:8]
SCOUT_RATE, LONGEST, LARGEST_STEP, LEAST_S, S_NEAR_1, S_LIMIT, NEW_S = _OWN[8:15]
ASLEEP, ALIGNED, DRIFT, WAKE, LEAST_SHARE, QUIET, CLEAR = _OWN[15:22]
LEAST_D_RATE, D_WINDOW = _OWN[22:24]
(
    LEAST_RATIO, LINEAR_RATIO, SIGMA_RATIO, SPEED, MOST_CHANGE, LEAST_RATE, WINDOW_RATE, SHORTEST,
    WINDOW_LEAST, SIGMA_WINDOW, WIDENING, SETTLED,
) = _OWN[24:]  # fmt: skip

# Rows of the table with a number for each direction ...
TABLE = (
    *("path_along", "gz_along", "gm_along", "q_along", "ww"),
    # ... or for each axis: S, its values after each part of the step, lengths squared,
    "S", "S_within", "S_kept", "S_out", "S_next", "ones",
    # the largest V^2 of an axis and its coordinate, where an axis comes from, and the share of
    # a scout, of the base of a new one, and of the scout that became an axis
    *("largest", "coordinate", "identity", "source", "order"),
    *("of_long", "of_short", "of_new"),
)  # fmt: skip
PATH_ALONG, GZ_ALONG, GM_ALONG, Q_ALONG, WW = places(TABLE)[:5]
S, S_WITHIN, S_KEPT, S_OUT, S_NEXT, ONES = places(TABLE)[5:11]
LARGEST_V2, COORDINATE, IDENTITY, SOURCE, ORDER = places(TABLE)[11:16]
OF_LONG, OF_SHORT, OF_NEW = places(TABLE)[16:]

# Weights of each pair in sums of z: of the path p_sigma, of the mean, of the path p_c, of a fresh
# short scout, and then of each direction.
WEIGHTS = ("hat", "gm", "gz", "fresh")
W_HAT, W_GM, W_GZ, W_FRESH = places(WEIGHTS)
OF_DIRECTIONS = tl.constexpr(len(WEIGHTS))
# The sums become rows of the work space. Once the first two are used, the new scouts are there;
# in place of the sums for directions come the steps, and then the axes. More rows follow: the
# gradient of log D, which becomes its step, the path as a sample, and the axes once more.
OF_AXES = tl.constexpr(len(WEIGHTS) + SCOUTS)
FIGURES = (*SHARED_FIGURES, "axes")
F_AXES = places(FIGURES)[-1]
