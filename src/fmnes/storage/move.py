"""A saved search moved to another array library or device."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from fmnes._arrays import Array, to_host
from fmnes.engines import registration


def moved(saved: dict[str, Any], like: Array, *, may_stream: bool = True) -> dict[str, Any]:
    """Return a saved search whose arrays are of the library and on the device of ``like``.

    They keep their dtypes. Values and counts stay on the host. If the search streams on that
    device, only its state goes there: the engine keeps the rest on the host.
    """
    xp, setup, there = array_namespace(like), saved["setup"], device(like)

    def to(place: Any, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):  # a record of arrays
            return type(value)(*(to(place, item) for item in value))
        return xp.asarray(np.array(to_host(value)), device=place)

    one = to(there, saved["state"].mean[:1])
    streams = may_stream and registration(setup.method, one).streams_with(setup.settings)
    rest = "cpu" if streams else there
    places = {"mean": rest, "shape": rest, "box": there, "discrete": there}
    places = {name: to(place, getattr(setup, name)) for name, place in places.items()}
    arrays = {name: to(there, saved[name]) for name in ("state", "margin", "extra_x")}
    arrays |= {name: to(rest, saved[name]) for name in ("initial", "best")}
    if saved["injected"] is not None:
        points = to(there, saved["injected"].points)
        arrays["injected"] = saved["injected"]._replace(points=points)
    return {**saved, **arrays, "setup": setup._replace(**places)}
