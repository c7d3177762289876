"""Small functions that several kernels call."""

import triton
import triton.language as tl


@triton.jit
def phase_of(length2, chi2):
    """1 movement, 2 stagnation, 3 convergence, by the length of the path p_sigma (step 5)."""
    return 1.0 + (length2 < chi2).to(tl.float64) + (length2 < 0.01 * chi2).to(tl.float64)


@triton.jit
def added(partial, kind, programs, WIDTH: tl.constexpr):
    """The sum of a kernel's partial sums of one kind."""
    at = tl.arange(0, WIDTH)
    return tl.sum(tl.load(partial + kind * programs + at, mask=at < programs, other=0.0))


@triton.jit
def largest_of(partial, kind, programs, WIDTH: tl.constexpr):
    """The largest of a kernel's partial results of one kind."""
    at = tl.arange(0, WIDTH)
    return tl.max(tl.load(partial + kind * programs + at, mask=at < programs, other=-1e300))


@triton.jit
def H_of(vv, largest, r):
    """Step 4 of `natural_gradient`."""
    share = vv / largest
    return 2.0 * (1.0 - share) + share * tl.maximum(2.0 - 4.0 * largest, 1.0 / r)
