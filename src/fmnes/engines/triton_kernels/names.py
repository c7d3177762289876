"""The arrays that the kernels share with the host: the name and the place of each number."""

import triton.language as tl


def places(names):
    """The place of each name of an array, as the kernels need it."""
    return tuple(tl.constexpr(place) for place in range(len(names)))


# What the arrays hold, in order. The engine fills them by these names; the kernels know the places
# under the same names in capitals.
NUMBERS = (
    # of the state
    *("sigma", "norm_v2", "v_max2", "p_sigma2", "denominator", "vv_vv_h", "pc_v", "stretch"),
    # of the update
    *("lam_F", "certain", "phase", "c_1", "a_path", "odd_a", "aa", "s_along"),
    *("alpha", "kappa", "largest", "b", "factor"),
    *("c_h", "along", "fraction", "d_scale", "v_scale"),
    # of the values: whether all are equal (and the method is safe), which candidate is the best
    # one, whether it is the best so far, and the two values in the middle
    *("flat", "best", "better", "middle_below", "middle_above"),
)
SIGMA, NORM_V2, V_MAX2, P_SIGMA2, DENOMINATOR, VV_VV_H, PC_V, STRETCH = places(NUMBERS)[:8]
LAM_F, CERTAIN, PHASE, C_1, A_PATH, ODD_A, AA, S_ALONG = places(NUMBERS)[8:16]
ALPHA, KAPPA, LARGEST, B, FACTOR = places(NUMBERS)[16:21]
C_H, ALONG, FRACTION, D_SCALE, V_SCALE = places(NUMBERS)[21:26]
FLAT, BEST, BETTER, MIDDLE_BELOW, MIDDLE_ABOVE = places(NUMBERS)[26:]
CONSTANTS = (
    *("dim", "popsize", "chi_n", "c_sigma", "scale_sigma", "c_c", "scale_c"),
    *("long_v", "largest_step", "D_limit", "v_min", "v_max", "eps", "tolx"),
)
DIM, POPSIZE, CHI_N, C_SIGMA, SCALE_SIGMA, C_C, SCALE_C = places(CONSTANTS)[:7]
LONG_V, LARGEST_STEP, D_LIMIT, V_MIN, V_MAX, EPS, TOLX = places(CONSTANTS)[7:]
# Rows of the table of rates by the number of feasible candidates; T_ before their capitals.
RATES = ("alpha", "eta_B", "eta_movement", "eta_stagnation", "eta_convergence", "c_1")
T_ALPHA, T_ETA_B, T_ETA_MOVEMENT, T_ETA_STAGNATION, T_ETA_CONVERGENCE, T_C_1 = places(RATES)
# Rows of the array with a number for each pair of candidates.
PAIRS = (
    *("zv", "norm_z2", "zp", "odd_hat", "even_hat", "odd_dist", "even_dist"),
    *("odd", "even", "even_a"),
)
ZV, NORM_Z2, ZP, ODD_HAT, EVEN_HAT, ODD_DIST, EVEN_DIST, ODD, EVEN, EVEN_A = places(PAIRS)
# The figures of a generation that the host gets; F_ before their capitals.
FIGURES = (
    # of the values, as in `Survey`
    *("nan", "feasible", "least", "most", "size", "median", "flat"),
    # of the state
    *("sigma", "axis_ratio", "norm_v", "phase"),
    *("deviation_min", "deviation_max", "mean_max", "shrunk"),
)
F_NAN, F_FEASIBLE, F_LEAST, F_MOST, F_SIZE, F_MEDIAN, F_FLAT = places(FIGURES)[:7]
F_SIGMA, F_AXIS_RATIO, F_NORM_V, F_PHASE = places(FIGURES)[7:11]
F_DEVIATION_MIN, F_DEVIATION_MAX, F_MEAN_MAX, F_SHRUNK = places(FIGURES)[11:]
# The phase is certain before p_sigma is known if |p_sigma| is this many standard deviations away
# from the limits of the phases.
SAFETY = tl.constexpr(100.0)
