"""fmnes as a method of `scipy.optimize.minimize`: ``method=fmnes.scipy_method``.

SciPy is imported when it calls, not before: ``import fmnes`` stays light.
"""

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes._coordinates import read_bounds
from fmnes._minimize import minimize
from fmnes._result import Result, Status
from fmnes._stopping import Stopping

_DEVIATION = 1 / 6  # of the width between two bounds: they are three deviations from their middle
# SciPy's own numbers where it has one (Nelder-Mead's, and 99 for the callback).
_CODES = {Status.MAXFEVALS: 1, Status.MAXITER: 2, Status.CALLBACK: 99}
_OTHER = 3
# What `minimize` takes, less what SciPy has an argument or a generic option of its own for.
_OPTIONS = inspect.signature(minimize).parameters.keys() - {
    "fun", "x0", "args", "bounds", "callback", "sigma0", "progress",
}  # fmt: skip


def scipy_method(
    fun: Callable[..., Any],
    x0: NDArray[Any],
    args: tuple[Any, ...] = (),
    *,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    sigma0: Any = None,
    tol: float | None = None,
    disp: bool = False,
    **options: Any,
) -> Any:
    """Hand this to `scipy.optimize.minimize` as its ``method``; SciPy calls it.

    Derivatives are not used (a RuntimeWarning says so, as with SciPy's own methods that do not);
    constraints other than bounds are an error. ``callback`` has either of SciPy's signatures,
    ``callback(xk)`` or ``callback(intermediate_result)``, and may raise StopIteration.

    Parameters
    ----------
    sigma0 : float or array_like of shape (d,)
        Initial standard deviation. Without it, a sixth of the width between the bounds: every
        variable must then have two finite ones.
    tol : float, optional
        ``Stopping(tolx=tol, tolfun=tol)``, both relative: see `Stopping`. SciPy passes its
        argument ``tol`` here.
    disp : bool
        Show a progress bar on standard error.
    **options
        The other arguments of `fmnes.minimize`: ``method``, ``popsize``, ``ftarget``,
        ``maxfevals``, ``maxiter``, ``timeout``, ``stopping``, ``workers``, ``restarts``, ``rng``,
        ... An unknown one is an OptimizeWarning, as everywhere in SciPy.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With ``status`` 0 for success, 1 for maxfevals, 2 for maxiter, 99 for the callback and 3
        for another end that ``message`` tells; ``nfailed``; and ``result``, our own `Result`.

    Examples
    --------
    >>> import fmnes
    >>> from scipy.optimize import minimize, rosen
    >>> result = minimize(rosen, [0.0] * 5, method=fmnes.scipy_method, bounds=[(-2, 2)] * 5,
    ...                   options={"ftarget": 1e-8, "rng": 1})
    >>> result.success, result.status, result.message
    (True, 0, 'The best value reached the target ftarget.')
    """
    _check_unused(jac=jac, hess=hess, hessp=hessp)
    if np.size(constraints):
        raise ValueError(
            f"constraints: expected none, got {constraints!r}; use SciPy's methods 'COBYQA', "
            "'SLSQP' or 'trust-constr', or let fun return inf where a point is not feasible"
        )
    if tol is not None:
        if options.get("stopping") is not None:
            raise ValueError(f"tol: expected None beside the option stopping, got {tol!r}")
        options["stopping"] = Stopping(tolx=tol, tolfun=tol)
    result = minimize(
        _Objective(fun),
        x0,
        _deviations(bounds, len(x0)) if sigma0 is None else sigma0,
        args=args,
        bounds=bounds,
        callback=None if callback is None else _adapted(callback),
        progress=disp,
        **_known(options),
    )
    return _to_scipy(result)


class _Objective:
    """The objective as SciPy calls it: with a copy of x, which it may keep or change.

    A class, so that it can be sent to the processes of ``workers``.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._fun = fun

    def __call__(self, x: NDArray[Any], *args: Any) -> Any:
        value = self._fun(np.copy(x), *args)
        single = isinstance(value, np.ndarray) and x.ndim == 1 and value.size == 1
        return value.item() if single else value  # SciPy takes an array of one number for it


def _check_unused(**derivatives: Any) -> None:
    for name, value in derivatives.items():
        if value is not None:
            warnings.warn(
                f"Method fmnes.scipy_method does not use derivatives ({name}).",
                RuntimeWarning,
                stacklevel=4,  # through SciPy's minimize, to the user's line
            )


def _deviations(bounds: Any, dim: int) -> NDArray[np.float64]:
    """The initial standard deviations that bounds suggest."""
    low, high = read_bounds([(None, None)] * dim if bounds is None else bounds, dim)
    if not np.isfinite(high - low).all():
        raise ValueError(
            "sigma0: expected options={'sigma0': ...}, or two finite bounds for every variable, "
            f"got bounds = {bounds!r}"
        )
    return np.where(low < high, _DEVIATION * (high - low), 1.0)


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """The options that there are; a warning in SciPy's words about the others."""
    unknown = options.keys() - _OPTIONS
    if unknown:
        from scipy.optimize import OptimizeWarning

        warnings.warn(
            f"Unknown solver options: {', '.join(sorted(unknown))} "
            f"(there are: {', '.join(sorted(_OPTIONS | {'sigma0', 'tol', 'disp'}))})",
            OptimizeWarning,
            stacklevel=4,
        )
    return {name: value for name, value in options.items() if name not in unknown}


def _adapted(callback: Callable[..., Any]) -> Callable[[Result], Any]:
    """A callback of SciPy's for ours: it gets what its signature asks for."""
    names: Sequence[str] = list(inspect.signature(callback).parameters)
    if names == ["intermediate_result"]:
        return lambda result: callback(intermediate_result=_to_scipy(result))
    return lambda result: callback(np.copy(result.x))


def _to_scipy(result: Result) -> Any:
    from scipy.optimize import OptimizeResult

    return OptimizeResult(
        x=result.x,
        fun=result.fun,
        success=result.success,
        status=0 if result.success else _CODES.get(result.status, _OTHER),
        message=result.message,
        nfev=result.nfev,
        nit=result.nit,
        nfailed=result.nfailed,
        result=result,
    )
