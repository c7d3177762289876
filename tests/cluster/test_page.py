"""The page about clusters says what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def line(row):
    kilobytes = [row["bytes_of_a_generation_median"] / 1e3, row["bytes_of_the_candidates"] / 1e3]
    milliseconds = [row["cpu_ms_of_draws_and_update"], row["cpu_ms_of_a_hash"]]
    joining = row["bytes_of_a_checkpoint"] / 1e6
    return "| {:,} | {} | {:.1f} kB | {:,.0f} kB | {:.2g} MB | {:.3g} ms | {:.2g} ms |".format(
        row["dim"], row["popsize"], *kilobytes, joining, *milliseconds
    )


def test_its_table_is_the_stored_one():
    page = (ROOT / "docs" / "cluster.md").read_text()
    rows = json.loads((ROOT / "benchmarks" / "results" / "cluster.json").read_text())["rows"]
    dask = [line(row) for row in rows if row["engine"] == "dask"]
    assert len(dask) == 3
    assert "\n".join(dask) in page


def test_kilobytes_at_a_million_variables():
    rows = json.loads((ROOT / "benchmarks" / "results" / "cluster.json").read_text())["rows"]
    (row,) = (row for row in rows if (row["engine"], row["dim"]) == ("dask", 10**6))
    assert row["bytes_of_a_generation_most"] < 10_000 < row["bytes_of_the_candidates"] / 30_000
