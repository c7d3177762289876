"""A saved search moved to another array library or device."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from fmnes._arrays import Array, to_host


def moved(saved: dict[str, Any], like: Array) -> dict[str, Any]:
    """Return a saved search whose arrays are of the library and on the device of ``like``.

    They keep their dtypes. Values and counts stay on the host.
    """
    xp = array_namespace(like)

    def there(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):  # a record of arrays
            return type(value)(*map(there, value))
        return xp.asarray(np.array(to_host(value)), device=device(like))

    setup = saved["setup"]
    places = {name: there(getattr(setup, name)) for name in ("mean", "shape", "box", "discrete")}
    names = "state", "initial", "best", "margin", "extra_x"
    arrays = {name: there(saved[name]) for name in names}
    if saved["injected"] is not None:
        points = there(saved["injected"].points)
        arrays["injected"] = saved["injected"]._replace(points=points)
    return {**saved, **arrays, "setup": setup._replace(**places)}
