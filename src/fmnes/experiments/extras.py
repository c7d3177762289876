"""Packages that only an extra of this library installs."""

import importlib.util


def require(extra: str, *modules: str) -> None:
    """Complain, with a way out, if a package of an extra is not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f'{module} is not installed: pip install "fmnes[{extra}]"', name=module
            )
