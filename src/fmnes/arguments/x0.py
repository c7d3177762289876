"""x0 and sigma0: read the starting point and the initial deviations in each of their forms."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._arrays import Array, Namespace, to_host
from fmnes.points.data import Data, Points, read_data
from fmnes.records.result import Result
from fmnes.variables.bounds import Sides
from fmnes.variables.space import Space


def space_of(x0: Any) -> Space | None:
    """Return the named variables of a search from x0, if it has any."""
    return x0.space if isinstance(x0, Result | Points) else x0 if isinstance(x0, Space) else None


def start_of(x0: Any) -> Any:
    """Return the vector where a search from x0 starts."""
    if isinstance(x0, Space):
        return x0.start()
    return x0.mean if isinstance(x0, Result) else x0


def best_known(x0: Any) -> Any:
    """Return the best point of a Result or of data; of any other x0 the start."""
    if isinstance(x0, Points):
        return read_data(x0).best
    return x0.x if isinstance(x0, Result) else start_of(x0)


def deviations_of(data: Data, sides: Sides | None) -> NDArray[np.float64]:
    """Return the deviations of data; NaN for a variable that takes its scale from two bounds.

    Such are choices, and variables that have the same value in all points.
    """
    deviations = np.where(data.deviations == 0, np.nan, data.deviations)
    unknown = np.isnan(deviations)
    if sides is not None:
        unknown &= ~(np.isfinite(sides.low) & np.isfinite(sides.high))
    if unknown.any():
        raise ValueError(
            "x0: expected points that differ in every variable without two bounds, or sigma0, got "
            f"the same value of variable {np.argmax(unknown)} in all points"
        )
    return deviations


def read_mean(x0: Any) -> tuple[Namespace, Array]:
    """Return x0 as a new floating-point vector, with its array library.

    Lists and integers become float64.
    """
    if x0 is None or isinstance(x0, Mapping):
        hint = "; for named variables use fmnes.Space({...}), see docs/variables.md"
        raise TypeError(
            f"x0: expected a vector of real numbers, got {x0!r:.60}{'' if x0 is None else hint}"
        )
    if callable(x0):
        raise TypeError(
            f"x0: expected a vector of real numbers, got a function, {x0!r:.60}; an Optimizer "
            "takes none: evaluate the candidates of ask(), and pass their values to tell()"
        )
    if isinstance(x0, np.ma.MaskedArray):
        x0 = to_host(x0)
    if not is_array_api_obj(x0):
        x0 = checks.numbers("x0", x0, "a vector of real numbers")
    if is_torch_array(x0):  # the search must not become part of a gradient
        x0 = x0.detach()
    xp = array_namespace(x0)
    if xp.isdtype(x0.dtype, ("bool", "integral")):
        x0 = xp.astype(x0, xp.float64)
    elif not xp.isdtype(x0.dtype, "real floating") or xp.finfo(x0.dtype).bits < 32:
        raise TypeError(f"x0: expected real numbers of 32 or 64 bits, got dtype {x0.dtype}")
    if x0.ndim != 1 or x0.shape[0] == 0:
        hint = " (pass x0.ravel(), and reshape x in the function)" if x0.ndim > 1 else ""
        if x0.ndim == 0:
            hint = f" (for one variable write [{float(x0)}])"
        raise ValueError(
            f"x0: expected a vector of shape (d,) with d >= 1, got shape {x0.shape}{hint}"
        )
    if not bool(xp.all(xp.isfinite(x0))):
        bad = int(xp.argmax(xp.astype(~xp.isfinite(x0), xp.int8)))
        raise ValueError(f"x0: expected finite numbers, got x0[{bad}] = {float(x0[bad])}")
    largest = float(xp.max(xp.abs(x0)))
    checks.in_scale("x0", np.array([largest]), xp.finfo(x0.dtype))
    return xp, xp.asarray(x0, copy=True)


def default_deviations(
    x0: NDArray[np.float64],
    sides: Sides | None,
    is_integer: NDArray[np.bool_],
    popsize: int,
    dim: int,
) -> NDArray[np.float64]:
    """Return the initial deviations if the user gives no sigma0.

    They are a third of a distance within which the optimum may lie: half the range of a variable
    with two bounds; for the others, the median size of their x0 that is not 0, or 3 if all are 0.
    Beyond about 1000 variables they are less: popsize candidates find no descent if the step is
    longer than c mu_eff / sqrt(d) times the distance, and c mu_eff is about 0.37 popsize.
    """
    low, high = (np.full_like(x0, -np.inf), np.full_like(x0, np.inf)) if sides is None else sides
    bounded = np.isfinite(low) & np.isfinite(high)
    size = np.abs(x0[~bounded & (x0 != 0)])
    open_sided = np.median(size) / 3 if size.size else 1.0
    # With a sixth of the range, both bounds are three standard deviations from the middle.
    # The range of integers includes the numbers that are rounded to the first and the last.
    range_ = np.subtract(high, low, where=bounded, out=np.ones_like(x0)) + is_integer
    deviations = np.where(bounded, np.where(low < high, range_ / 6, 1.0), open_sided)
    return np.asarray(deviations * min(1.0, 1.1 * popsize / math.sqrt(dim)))


def read_deviations(sigma0: Any, dim: int) -> NDArray[np.float64]:
    """Return sigma0 as one positive number per variable."""
    sizes = checks.numbers("sigma0", sigma0, "a number or a vector")
    if sizes.shape not in ((), (dim,)):
        hint = " (did you mean bounds=...?)" if sizes.shape in ((dim, 2), (2, dim)) else ""
        raise ValueError(
            f"sigma0: expected a number or a vector of shape ({dim},), got shape "
            f"{sizes.shape}{hint}"
        )
    one_number, sizes = sizes.ndim == 0, np.broadcast_to(sizes, (dim,))
    good = np.isfinite(checks.distinct(sizes)) & (checks.distinct(sizes) > 0)
    if not good.all():
        bad = int(np.argmin(good))
        where = "sigma0" if one_number else f"sigma0[{bad}]"
        raise ValueError(
            "sigma0: expected finite numbers > 0 (about a third of the distance from x0 to the "
            f"optimum), got {where} = {sizes[bad]}"
        )
    return sizes
