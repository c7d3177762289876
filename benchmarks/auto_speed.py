"""Time of a generation of auto with some numbers of axes, next to one of cr-fm-nes.

    python benchmarks/auto_speed.py     # prints, and keeps in results/auto_speed.json

A generation is `ask(out=)` and `tell` in one thread, with values without meaning. The searches of
one number of variables take turns, and the best of many generations counts, as other processes
disturb these times. Without axes auto computes only its first two generations.
"""

import argparse
import functools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fmnes
from fmnes._search import Kept

KEPT = Path(__file__).parent / "results/auto_speed.json"
DIMS = (80, 1000, 10_000, 100_000)
AXES = (1, 2, 8, 32)


@functools.cache
def directions(dim: int, axes: int) -> NDArray[np.float64]:
    """Orthonormal vectors by chance, shape (d, axes)."""
    return np.linalg.qr(np.random.default_rng(1).normal(size=(dim, axes)))[0]


def with_axes(dim: int, axes: int) -> fmnes.Optimizer:
    """A search by auto with as many axes, half of them long, in directions by chance."""
    search = fmnes.Optimizer(np.zeros(dim), 1.0, method=fmnes.Auto(axes=max(axes, 4)), rng=1)
    engine = search._engine
    room = max(axes, 4)
    S = np.ones(room)
    S[: (axes + 1) // 2], S[room - axes // 2 :] = 9.0, 1 / 9.0
    V = np.zeros((dim, room))
    V[:, S != 1] = directions(dim, axes)
    search._set_engine(engine.params, engine.state._replace(V=V, S=S), 0, Kept())
    return search


def lap(search: fmnes.Optimizer, out: NDArray[np.float64], count: int) -> float:
    """The shortest of some generations, in microseconds."""
    values = np.random.default_rng(search.nit).random((count, len(out)))
    best = np.inf
    for f in values:
        begun = time.perf_counter()
        search.ask(out=out)
        search.tell(f)
        best = min(best, time.perf_counter() - begun)
    return 1e6 * best


def measure(dim: int, seconds: float) -> dict[str, Any]:
    """Microseconds of a generation of cr-fm-nes, and of auto for each number of axes."""
    searches = {"cr-fm-nes": fmnes.Optimizer(np.zeros(dim), 1.0, method="cr-fm-nes", rng=1)}
    searches |= {str(axes): with_axes(dim, axes) for axes in AXES if axes <= dim // 8}
    lam = searches["cr-fm-nes"].popsize
    out, best = np.empty((lam, dim)), dict.fromkeys(searches, np.inf)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, search in searches.items():
            best[name] = min(best[name], lap(search, out, 10))
            if name != "cr-fm-nes" and np.sum(search._engine.state.S != 1) != int(name):
                searches[name] = with_axes(dim, int(name))  # values without meaning led it away
    return {"d": dim, "lambda": lam, **best}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a table in Markdown: the time of cr-fm-nes, and multiples of it for auto."""
    head = "".join(f" {axes} {'axis' if axes == 1 else 'axes'} |" for axes in AXES)
    lines = [f"| d | λ | `cr-fm-nes`, µs |{head}", (3 + len(AXES)) * "|---" + "|"]
    for row in rows:
        base = row["cr-fm-nes"]
        ratios = [f"{row[str(k)] / base:.2f}" if str(k) in row else "" for k in AXES]
        lines.append(f"| {row['d']:,} | {row['lambda']} | {base:.0f} | {' | '.join(ratios)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, nargs="+", default=DIMS)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each row")
    parser.add_argument("--output", type=Path, default=KEPT)
    chosen = parser.parse_args()
    fmnes.set_num_threads(1)
    rows = [measure(dim, chosen.seconds) for dim in chosen.dims]
    chosen.output.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
