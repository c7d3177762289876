"""The tables of docs/many-machines.md from the stored figures.

    python benchmarks/many_machines.py

The figures are made by benchmarks/evaluation.py (minutes) and benchmarks/soak.py (ten minutes).
"""

import json
from pathlib import Path
from typing import Any

from pages import table, with_tables

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/many-machines.md"
RESULTS = ROOT / "benchmarks/results"


def tables() -> dict[str, str]:
    """All of the page, by name."""
    evaluation = json.loads((RESULTS / "evaluation.json").read_text())
    soak = json.loads((RESULTS / "soak.json").read_text())
    return {
        "overhead": _overhead(evaluation["overhead"]),
        "bytes": _bytes(evaluation["bytes"]),
        "soak": _soak(soak),
    }


def _overhead(engines: dict[str, dict[str, float]]) -> str:
    titles = [f"{popsize} that {kind}" for kind in ("sleep", "compute") for popsize in (64, 256)]
    rows = [
        [name, *(f"{100 * ratio:.0f} %" for ratio in ratios.values())]
        for name, ratios in engines.items()
    ]
    return table(["", *titles], rows)


def _bytes(rows: list[dict[str, Any]]) -> str:
    names = ["workers=2", "ProcessPoolExecutor", "candidates would be"]
    cells = [[f"{row['d']:,}", *(f"{row[name] / 1e6:.3g} MB" for name in names)] for row in rows]
    return table(["variables", *names], cells)


def _soak(soak: dict[str, Any]) -> str:
    rows = [[name, count] for name, count in soak["faults"].items()]
    names = (
        *("faults in all", "generations", "evaluations told"),
        "result identical to an undisturbed run",
    )
    rows += [[name, {True: "yes", False: "no"}.get(soak[name], soak[name])] for name in names]
    return table(["in {:.0f} seconds".format(soak["seconds"]), ""], rows)


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text(), tables()))


if __name__ == "__main__":
    main()
