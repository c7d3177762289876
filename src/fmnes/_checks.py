"""Checks of single arguments, and the wording of their error messages.

Every message names the argument, what was expected and what came. Arguments are checked before the
first evaluation, and no value is corrected silently.
"""

import difflib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray

from fmnes._arrays import to_host

# The largest size of means and standard deviations, in parts of the largest finite number: samples
# lie many deviations away from the mean.
ROOM = 1e-3
_MEANT = {  # names that other packages have for our arguments and methods
    "seed": "rng",
    "random_seed": "rng",
    "random_state": "rng",
    "tol": "stopping",
    "tolx": "stopping",
    "tolfun": "stopping",
    "budget": "maxfevals",
    "maxfun": "maxfevals",
    "generations": "maxiter",
    "n_jobs": "workers",
    "population_size": "popsize",
    "sigma": "sigma0",
    "verbose": "progress",
    "disp": "progress",
    "cma": "cma-es",
}
_OF_SCIPY = {  # names of SciPy's methods, and where SciPy has them
    **dict.fromkeys(
        (
            *("Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA"),
            *("COBYQA", "SLSQP", "trust-constr", "dogleg", "trust-ncg", "trust-krylov"),
            "trust-exact",
        ),
        "a method of scipy.optimize.minimize",
    ),
    **{
        name: f"see scipy.optimize.{name}"
        for name in (
            *("differential_evolution", "dual_annealing", "basinhopping", "shgo", "direct"),
            *("brute", "least_squares"),
        )
    },
}
_INSTEAD = {  # what to do in place of an argument that other packages have
    "options": "give each option as an argument of its own, such as maxfevals=1000",
    **dict.fromkeys(
        ("maximize", "maximise", "direction"), "to maximize, return the negative value"
    ),
    **dict.fromkeys(
        ("restarts", "workers", "callback", "checkpoint", "progress", "vectorized"),
        "fmnes.minimize has it",
    ),
    **dict.fromkeys(("jac", "hess", "grad", "gradient"), "the methods use values only"),
}


def integer(name: str, value: Any, *, least: int) -> int:
    """Return a whole number that is at least ``least``; 1e6 counts as whole."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole or (isinstance(value, float) and value.is_integer())):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value!r}")
    return int(value)


def real(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """Return a real number of a range: at least ``least``, larger than ``above``, ..."""
    limits = [
        f"{sign} {limit:g}"
        for sign, limit in ((">=", least), (">", above), ("<", below))
        if math.isfinite(limit)
    ]
    expected = " ".join(["a number", " and ".join(limits)]).strip()
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: expected {expected}, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = math.nan
    inside = number >= least and (number > above or above == -math.inf)  # NaN fails both
    if not (inside and (number < below or below == math.inf)):
        raise ValueError(f"{name}: expected {expected}, got {_short(value)}")
    return number


def finite(name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
    """Return a real number that is not infinite; see `real`."""
    number = real(name, value, least=least, above=above)
    if math.isinf(number):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    return number


def boolean(name: str, value: Any) -> bool:
    """Return True or False; no other value counts as either."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Return one of several words."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def no_others(unknown: Mapping[str, object], accepted: Iterable[str]) -> None:
    """Raise an error if there are arguments of other names than a function accepts."""
    for name, value in unknown.items():
        hint = f" ({_INSTEAD[name]})" if name in _INSTEAD else did_you_mean(name, accepted)
        raise TypeError(f"{name}: expected no argument of this name, got {_short(value)}{hint}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question about what a misspelt word may mean; "" if no known word is near."""
    by_letters = {_letters(other): other for other in known}
    near = difflib.get_close_matches(
        _letters(_MEANT.get(word.lower(), word)), by_letters, n=1, cutoff=0.7
    )
    return f" (did you mean {by_letters[near[0]]!r}?)" if near else ""


def method_hint(word: str, known: Iterable[str]) -> str:
    """Return where another package has a method of this name, or what the name may mean."""
    places = {_letters(name): place for name, place in _OF_SCIPY.items()}
    place = places.get(_letters(word))
    return did_you_mean(word, known) if place is None else f" ({place})"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def function(name: str, value: Any) -> Callable[..., Any]:
    """Return a callable."""
    if not callable(value):
        raise TypeError(f"{name}: expected a function, got {_short(value)}")
    called: Callable[..., Any] = value
    return called


def arguments(name: str, value: Any) -> tuple[Any, ...]:
    """Return further arguments of a function, which are a tuple."""
    if not isinstance(value, tuple):
        raise TypeError(f"{name}: expected a tuple such as (a,), got {_short(value)}")
    return value


def path(name: str, value: Any) -> str:
    """Return the path of a file as a string."""
    if not isinstance(value, str | os.PathLike) or not (text := os.fspath(value)):
        raise TypeError(f"{name}: expected a path, got {value!r}")
    return os.fsdecode(text)


def path_to_write(name: str, value: Any) -> str:
    """Return the path of a file whose folder exists."""
    text = path(name, value)
    folder = os.path.dirname(os.path.abspath(text))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name}: expected a folder that exists, got {folder}")
    return text


def numbers(name: str, value: Any, expected: str) -> NDArray[np.float64]:
    """Return a new float64 array on the host of the real numbers in ``value``."""
    try:
        array = np.asarray(to_host(value))
        if array.dtype.kind in "biufO":  # neither complex numbers nor text that looks like numbers
            return np.array(array, dtype=np.float64)
        came = f"dtype {array.dtype}"
    except (OverflowError, TypeError, ValueError) as error:
        came = str(error)
    raise TypeError(f"{name}: expected {expected}, got {_short(value)} ({came})")


def all_finite(name: str, values: NDArray[np.float64]) -> None:
    """Raise an error unless all numbers of an array are finite."""
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        place = ", ".join(map(str, bad[0]))
        came = values[tuple(bad[0])]
        raise ValueError(f"{name}: expected finite numbers, got {name}[{place}] = {came}")


def distinct(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a vector, or one element of it if it repeats one number without memory of its own."""
    return values[:1] if values.strides == (0,) else values


def in_scale(
    name: str,
    values: NDArray[np.float64],
    info: Any,
    *,
    least: float = 0.0,
    advice: str = "rescale your variables",
) -> None:
    """Raise an error unless a search in the floating-point type of ``info`` has room for samples.

    ``least`` is the smallest size of a number that is allowed.
    """
    most = ROOM * float(info.max)
    bad = np.flatnonzero((np.abs(values) > most) | (np.abs(values) < least))
    if bad.size:
        raise ValueError(
            f"{name}: expected numbers between {least:.2g} and {most:.2g} in size, which is what a "
            f"search with numbers of {info.bits} bits can hold, got {values[bad[0]]:g}; "
            f"{advice}"
        )


class Hint(str):
    """A note of an exception that says what to do; the command line shows it."""

    __slots__ = ()


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if there are several."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short(value: Any) -> str:
    """Return ``value`` as text; its type alone if the text is long."""
    text = repr(value)
    return text if len(text) <= 60 else type(value).__name__


def an_array(name: str, value: Any) -> Any:
    """Return ``value`` if it is an array of any library."""
    if not is_array_api_obj(value):
        raise TypeError(f"{name}: expected an array or a tensor, got {_short(value)}")
    return value


def buffer(name: str, out: Any, shape: tuple[int, ...]) -> None:
    """Raise an error unless ``out`` is a writable NumPy array of this shape."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name}: expected a NumPy array, got {type(out).__name__}")
    if out.dtype.kind != "f":
        raise TypeError(f"{name}: expected an array of floating-point numbers, got {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got shape {out.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name}: expected an array that can be written to, got a read-only one")


def rate(name: str, value: Any) -> float | None:
    """Return a learning rate, a finite number >= 0, or None for the method's own."""
    return None if value is None else finite(name, value, least=0.0)


def fields(settings: Any, **checks: Callable[[str, Any], Any]) -> None:
    """Replace fields of a frozen settings record by what their checks return.

    A checkpoint stores a NumPy number as an array without dimensions: both become Python numbers.
    """
    for name, check in checks.items():
        value = getattr(settings, name)
        if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
            value = value.item()
        object.__setattr__(settings, name, check(name, value))
