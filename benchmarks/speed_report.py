"""Tables and plot of what benchmarks/speed.py stored."""

from pathlib import Path
from typing import Any

Row = dict[str, str]
Cells = dict[tuple[str, int], Row]

OURS = "fmnes"
BUFFERED = "fmnes, ask(out=)"
BOUNDS = ("draws alone", "write once")
FULL_MATRIX = ("fmnes CMA-ES", "pycma CMA-ES", "fmnes FM-NES", "eigh + 3 products")


def report(rows: list[Row], machine: dict[str, Any]) -> str:
    """All tables as Markdown: solvers down, numbers of variables across."""
    cells = {(row["solver"], int(row["d"])): row for row in rows}
    tables = {
        "Microseconds for one generation, ask and tell, the fastest lap": {
            name: _time_of(cells, name) for name in _linear(cells)
        },
        "Ratios of these times, and two numbers derived from them": _ratios(cells),
        "Time of the draws alone, and of writing candidates once (microseconds)": _bounds(cells),
        "Peak memory, without that of the imported package (MiB)": _memory(cells),
        "Methods with full matrices, microseconds for one generation": _full_matrix(cells),
    }
    parts = [_conditions(machine, rows)]
    for title, lines in tables.items():
        table = _table(cells, lines)
        if table:
            parts += [f"{title}:", table]
    return "\n\n".join(parts)


# === Lines of the tables: functions of the number of variables ===


def _linear(cells: Cells) -> list[str]:
    return [name for name in _names(cells) if name not in (*BOUNDS, *FULL_MATRIX)]


def _names(cells: Cells) -> list[str]:
    return list(dict.fromkeys(name for name, _ in cells))


def _number(cells: Cells, name: str, dim: int, field: str = "best_us") -> float | None:
    value = cells.get((name, dim), {}).get(field)
    return float(value) if value else None


def _time_of(cells: Cells, name: str) -> Any:
    def entry(dim: int) -> str:
        note = cells.get((name, dim), {}).get("note", "")
        return _shown(_number(cells, name, dim)) or note.split(":")[0]

    return entry


def _from(cells: Cells, *names: str, by: Any, field: str = "best_us", least: int = 1) -> Any:
    """An entry from several solvers' figures; empty where one has none, or below ``least``."""

    def entry(dim: int) -> str:
        figures = [_number(cells, name, dim, field) for name in names]
        return "" if None in figures or dim < least else _shown(by(dim, *figures))

    return entry


def _ratios(cells: Cells) -> dict[str, Any]:
    peers = ("fcmaes C++", "crfmnes (authors)", "evosax", "cmaes SepCMA", "pycma VD")
    lam = {dim: int(row["lambda"]) for (_, dim), row in cells.items()}
    return {
        **{
            f"{peer} / fmnes": _from(cells, peer, OURS, by=lambda d, theirs, ours: theirs / ours)
            for peer in (*peers, "pycma diagonal", "fmnes, NumPy kernels")
        },
        "fmnes / fmnes, 2 threads": _from(
            cells, OURS, "fmnes, 2 threads", by=lambda d, one, two: one / two
        ),
        "fmnes / fmnes, float32": _from(
            cells, OURS, "fmnes, float32", by=lambda d, double, single: double / single
        ),
        "minimize less ask(out=) and tell (µs)": _from(
            cells, "fmnes, minimize", BUFFERED, by=lambda d, whole, part: whole - part
        ),
        "fmnes, ns a candidate and coordinate": _from(
            cells, OURS, by=lambda d, time: 1e3 * time / (lam[d] * d)
        ),
    }


def _bounds(cells: Cells) -> dict[str, Any]:
    return {
        **{name: _time_of(cells, name) for name in (*BOUNDS, BUFFERED)},
        "(draws + write) / fmnes, ask(out=)": _from(
            cells, *BOUNDS, BUFFERED, by=lambda d, draws, write, time: (draws + write) / time
        ),
    }


def _memory(cells: Cells) -> dict[str, Any]:
    field = {"field": "beyond_import_mib"}
    large = field | {"least": 100_000}  # below, what does not grow with d hides the rest
    population = {d: int(row["lambda"]) * d * 8 / 2**20 for (_, d), row in cells.items()}
    return {
        **{name: _from(cells, name, by=lambda d, mib: mib, **field) for name in _linear(cells)},
        "fmnes, ask(out=), in populations of 8 lambda d bytes": _from(
            cells, BUFFERED, by=lambda d, mib: mib / population[d], **large
        ),
        "fmnes, streaming, less a population, in vectors of 8 d bytes": _from(
            cells,
            "fmnes, streaming",
            by=lambda d, mib: (mib - population[d]) / (8 * d / 2**20),
            **large,
        ),
    }


def _full_matrix(cells: Cells) -> dict[str, Any]:
    ratio = {"by": lambda d, a, b: a / b}
    return {
        **{name: _time_of(cells, name) for name in FULL_MATRIX},
        "pycma CMA-ES / fmnes CMA-ES": _from(cells, "pycma CMA-ES", "fmnes CMA-ES", **ratio),
        "fmnes FM-NES / (eigh + 3 products)": _from(
            cells, "fmnes FM-NES", "eigh + 3 products", **ratio
        ),
    }


# === Text ===


def _table(cells: Cells, lines: dict[str, Any]) -> str:
    """Markdown, without the columns and lines that would be empty; nothing if all would be."""
    lam = {dim: row["lambda"] for (_, dim), row in sorted(cells.items(), key=lambda it: it[0][1])}
    full = {name: {dim: entry(dim) for dim in lam} for name, entry in lines.items()}
    full = {name: line for name, line in full.items() if any(line.values())}
    kept = [dim for dim in lam if any(line[dim] for line in full.values())]
    if not kept:
        return ""
    texts = [["", *(f"d = {dim}, λ = {lam[dim]}" for dim in kept)], ["---"] * (1 + len(kept))]
    texts += [[name, *(line[dim] for dim in kept)] for name, line in full.items()]
    return "\n".join(f"| {' | '.join(text)} |" for text in texts)


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _conditions(machine: dict[str, Any], rows: list[Row]) -> str:
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    versions = ", ".join(sorted({row["version"] for row in rows if row["version"]}))
    return (
        f"{machine['date']}: {machine['cpu']} ({machine['instruction_set']}; {machine['cpus']} "
        f"CPUs, {machine['load_average']} busy before the run; {caches}; copy "
        f"{machine['copy_gb_per_s']} GB/s read and written), {machine['system']}, "
        f"Python {machine['python']}; kernels at level {machine['kernels']} by "
        f"{machine['compiler']}; {versions}."
    )


# === Plot ===

STYLES = {  # colour, line, marker; those of one package share a colour
    "fmnes": ("tab:red", "-", "o"),
    "fmnes, 2 threads": ("tab:red", "--", "o"),
    "fmnes, NumPy kernels": ("tab:red", ":", "o"),
    "fcmaes C++": ("tab:blue", "-", "s"),
    "crfmnes (authors)": ("black", "-", "D"),
    "evosax": ("tab:green", "-", "^"),
    "cmaes SepCMA": ("tab:purple", "-", "v"),
    "pycma VD": ("tab:orange", "-", "x"),
    "pycma diagonal": ("tab:orange", "--", "+"),
    "draws alone": ("0.5", "-", None),
    "write once": ("0.5", ":", None),
}


def plot(rows: list[Row], path: Path) -> None:
    """Time over the number of variables, both logarithmic, as wide as a column of a paper."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(3.5, 3.9), layout="constrained")
    for name, (color, line, marker) in STYLES.items():
        cells = [row for row in rows if row["solver"] == name and row["best_us"]]
        axes.loglog(
            [int(row["d"]) for row in cells],
            [float(row["best_us"]) for row in cells],
            color=color, linestyle=line, marker=marker, markersize=3, linewidth=1, label=name,
        )  # fmt: skip
    axes.set(xlabel="variables", ylabel="µs a generation (ask and tell)")
    axes.grid(visible=True, linewidth=0.3, alpha=0.6)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=7)
    figure.savefig(path, dpi=200)
    plt.close(figure)
