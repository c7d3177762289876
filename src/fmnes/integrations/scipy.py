"""fmnes as a method of `scipy.optimize.minimize`: ``method=fmnes.scipy_method``.

SciPy is imported only when it is needed, so that ``import fmnes`` stays fast.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmnes import _checks as checks
from fmnes._minimize import minimize
from fmnes.records.result import Result
from fmnes.records.status import Status
from fmnes.records.stopping import Stopping

# Status codes of SciPy: those of Nelder-Mead, and 99 for the callback.
_CODES = {Status.MAXFEVALS: 1, Status.MAXITER: 2, Status.CALLBACK: 99}
_OTHER = 3
# The arguments of `minimize`, except those for which SciPy has an argument or option of its own.
_OPTIONS = inspect.signature(minimize).parameters.keys() - {
    "fun", "x0", "args", "bounds", "callback", "constraints", "sigma0", "progress", "unknown",
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
    """Minimize a function for SciPy: pass this as ``method`` to `scipy.optimize.minimize`.

    It ignores derivatives with a RuntimeWarning, like SciPy's own derivative-free methods. It takes
    bounds and constraints. ``callback`` has either of SciPy's signatures,
    ``callback(xk)`` or ``callback(intermediate_result)``, and may raise StopIteration.

    Parameters
    ----------
    sigma0 : float or array_like of shape (d,), optional
        Initial standard deviation; see `fmnes.minimize`.
    tol : float, optional
        Means ``Stopping(tolx=tol, tolfun=tol)``; both are relative tolerances, see `Stopping`.
        SciPy passes its argument ``tol`` here.
    disp : bool
        Show a progress bar on standard error.
    **options
        The other arguments of `fmnes.minimize`: ``method``, ``popsize``, ``ftarget``,
        ``maxfevals``, ``maxiter``, ``timeout``, ``stopping``, ``workers``, ``restarts``, ``rng``,
        ... Unknown options cause an OptimizeWarning, as everywhere in SciPy.

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its ``status`` is 0 for success, 1 for maxfevals, 2 for maxiter, 99 for the callback, and 3
        for any other end (see ``message``). It also has ``nfailed``, ``maxcv`` (the violation of
        the constraints) and ``result``, the `Result` of fmnes.

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
    if tol is not None:
        if options.get("stopping") is not None:
            raise ValueError(f"tol: expected None with the option stopping, got {tol!r}")
        checks.real("tol", tol, least=0)
        options["stopping"] = Stopping(tolx=tol, tolfun=tol)
    result = minimize(
        _Objective(fun),
        x0,
        sigma0,
        args=args,
        bounds=bounds,
        constraints=constraints,
        callback=None if callback is None else _adapted(checks.function("callback", callback)),
        progress=disp,
        **_known(options),
    )
    return _to_scipy(result)


class _Objective:
    """Calls the objective as SciPy does: with a copy of x, which it may keep or change.

    A class, and not a closure, because worker processes need to unpickle it.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._fun = fun

    def __call__(self, x: NDArray[Any], *args: Any) -> Any:
        value = self._fun(np.copy(x), *args)
        single = isinstance(value, np.ndarray) and x.ndim == 1 and value.size == 1
        return value.item() if single else value  # SciPy accepts an array of one number, too


def _check_unused(**derivatives: Any) -> None:
    for name, value in derivatives.items():
        if value is not None:
            warnings.warn(
                f"Method fmnes.scipy_method does not use derivatives ({name}).",
                RuntimeWarning,
                stacklevel=4,  # through SciPy's minimize, to the user's line
            )


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Return the known options; warn of the others, in SciPy's words."""
    unknown = options.keys() - _OPTIONS
    if unknown:
        from scipy.optimize import OptimizeWarning

        warnings.warn(
            f"Unknown solver options: {', '.join(sorted(unknown))} "
            f"(known options: {', '.join(sorted(_OPTIONS | {'sigma0', 'tol', 'disp'}))})",
            OptimizeWarning,
            stacklevel=4,
        )
    return {name: value for name, value in options.items() if name not in unknown}


def _adapted(callback: Callable[..., Any]) -> Callable[[Result], Any]:
    """Return a callback of `minimize` that calls one of SciPy's, with what its signature says."""
    if list(inspect.signature(callback).parameters) == ["intermediate_result"]:
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
        maxcv=result.constr_violation,
        result=result,
    )
