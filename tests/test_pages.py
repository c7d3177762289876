"""The pages: their tables are those of the stored trials, and their claims follow from these."""

import csv
import json
import math

import numpy as np
import pytest

import fmnes
from benchmark_modules import BENCHMARKS, load


@pytest.fixture(scope="module")
def evidence():
    pytest.importorskip("crfmnes", reason="the peers are not installed")
    return load("evidence")


def test_the_tables_are_those_of_the_trials(evidence):
    page = evidence.PAGE.read_text()
    assert page.count("<!-- table:") >= 1
    assert evidence.with_tables(page, evidence.tables()) == page, (
        "run benchmarks/evidence.py --report"
    )


def counts(evidence, name, solver):
    """Evaluations of each cell's runs; NaN where the target was not reached."""
    cells = {}
    for row in evidence.read(evidence.RESULTS / f"{name}.csv").values():
        t = row.trial
        if t.solver == solver:
            key = (t.function, t.condition, t.spread, t.dim, t.popsize)
            cells.setdefault(key, []).append(row.evaluations if row.solved else math.nan)
    return {key: np.array(value) for key, value in cells.items()}


def test_cigars_are_always_solved_and_with_fewer_evaluations_than_vd_cma(evidence):
    ours, pycma = (counts(evidence, "cigars", s) for s in ("fmnes safe", "pycma VD"))
    assert len(ours) == 6 * 6
    for key, evaluations in ours.items():
        assert len(evaluations) == 10
        assert np.isfinite(evaluations).all(), key
        assert evaluations.mean() < np.nanmean(pycma[key]), key


def test_the_safe_variant_costs_nothing_on_the_papers_functions(evidence):
    safe, paper = (counts(evidence, "cost", s) for s in ("fmnes safe", "fmnes paper"))
    ratios = []
    for key, a in safe.items():
        logs = [np.log(x[np.isfinite(x)]) for x in (a, paper[key])]
        ratio = logs[0].mean() - logs[1].mean()
        half = 2 * math.sqrt(sum(x.var(ddof=1) / len(x) for x in logs))
        assert math.exp(ratio - half) <= 1.03, key
        ratios.append(ratio)
    assert len(ratios) == 4 * 3 * 2
    assert math.exp(np.mean(ratios)) <= 1.02


def test_the_times_of_full_matrices():
    full_matrix = load("full_matrix")
    rows = json.loads(full_matrix.KEPT.read_text())
    assert full_matrix.table(rows) in (BENCHMARKS.parent / "docs/kernels.md").read_text()
    decomposed = [row for row in rows if row["method"] in ("fm-nes", "dx-nes-ic")]
    assert max(row["ratio"] for row in decomposed if row["d"] >= 128) <= 1.5


def test_the_mixed_integer_suite():
    mixint = load("mixint")
    rows = [json.loads(line) for line in mixint.KEPT.read_text().splitlines()]
    text = mixint.PAGE.read_text()
    assert mixint.page(text, rows) == text


def test_the_times_of_auto():
    auto_speed = load("auto_speed")
    rows = json.loads(auto_speed.KEPT.read_text())
    assert auto_speed.table(rows) in (BENCHMARKS.parent / "docs/kernels.md").read_text()
    assert max(row["2"] / row["cr-fm-nes"] for row in rows) <= 1.5


def test_the_noise_of_auto():
    noise = load("noise")
    text = noise.PAGE.read_text()
    assert noise.page(text) == text


def test_the_landscapes_of_auto():
    landscapes = load("landscapes")
    text = landscapes.PAGE.read_text()
    assert landscapes.page(text) == text


def test_the_times_on_a_gpu():
    gpu = load("gpu")
    page = gpu.PAGE.read_text()
    for table in gpu.tables().values():
        assert table in page, "run benchmarks/gpu.py --report"


def test_where_other_packages_are_faster_on_a_gpu():
    """docs/gpu.md names each of these below its table."""
    rows = json.loads(load("gpu").RESULTS.read_text())["rows"]
    ms = {(row["solver"], row["dim"]): row["ms"] for row in rows if "ms" in row}
    names = dict.fromkeys(solver for solver, _ in ms)

    def behind(theirs):
        """Our solvers, with the powers of 10 at which the other one is faster."""
        ours = {name: [] for name in names if name.startswith("fmnes")}
        for (solver, dim), time in ms.items():
            if solver in ours and time > ms.get((theirs, dim), math.inf):
                ours[solver].append(round(math.log10(dim)))
        return {name: powers for name, powers in ours.items() if powers}

    always = {
        "fmnes PyTorch, array engine": [3, 5, 6],
        "fmnes PyTorch, auto, array engine": [3, 5],
        "fmnes JAX, auto": [3, 5],
    }
    assert behind("evosax CR_FM_NES") == always | {"fmnes JAX": [3, 5], "fmnes.jax": [3, 5]}
    assert behind("EvoX SNES") == always | {
        "fmnes PyTorch, auto": [3, 6],
        "fmnes JAX": [3, 5, 6],
        "fmnes.jax": [3, 5, 6, 7],
    }
    assert behind("evosax CR_FM_NES in a scan") == always | {
        "fmnes PyTorch": [3],
        "fmnes PyTorch, auto": [3, 5],
        "fmnes JAX": [3, 5],
        "fmnes.jax": [3, 5],
    }


def test_every_method_has_its_page():
    pages = BENCHMARKS.parent / "docs/methods"
    table = (pages / "index.md").read_text()
    for name, module in fmnes.METHODS.items():
        page, settings = (pages / f"{name}.md").read_text(), module.Settings.__name__
        assert f'`method="{name}"`' in page
        assert f".. autoclass:: fmnes.{settings}\n" in page
        assert f"| [`{name}`]({name}.md) | `{settings}` |" in table


def microseconds():
    """Of the fastest generation, by solver and number of variables, as stored."""
    with (BENCHMARKS / "results" / "speed.csv").open(newline="") as file:
        return {
            (row["solver"], int(row["d"])): float(row["best_us"])
            for row in csv.DictReader(file)
            if row["best_us"]
        }


def duration(us):
    """In the largest unit that leaves a whole number; below ten one digit more."""
    for unit in ("µs", "ms", "s"):
        if round(us) < 1000:
            return f"{us:.{1 if us < 10 else 0}f} {unit}"
        us /= 1000
    raise AssertionError(us)


def test_the_speed_that_the_readme_states():
    stored, text = microseconds(), (BENCHMARKS.parent / "README.md").read_text()
    header = next(line for line in text.splitlines() if line.startswith("| variables | fmnes |"))
    solvers = header.strip("| ").split(" | ")[1:]
    assert solvers[:3] == ["fmnes", "fcmaes C++", "crfmnes (authors)"]
    for dim in (10, 1000, 100_000, 1_000_000):
        cells = [stored.get((solver, dim)) for solver in solvers]
        row = ["not in 25 s" if us is None else duration(us) for us in cells]
        assert "| " + " | ".join([f"{dim:,}".replace(",", " "), *row]) + " |" in text


@pytest.fixture(scope="module")
def older_h():
    return load("older_h")


def test_the_table_of_the_older_h_is_that_of_its_trials(older_h):
    rows = older_h.read()
    assert [row[:4] for row in rows] == [trial[:4] for trial in older_h.trials()]
    assert (older_h.RESULTS / "older_h.md").read_text() == older_h.table(rows)


def test_the_older_h_has_no_effect_that_is_seen(older_h):
    rows = older_h.read()
    for dim in older_h.SEEDS:
        for function in older_h.PROBLEMS:
            right, older = (older_h.evaluations(rows, function, dim, H) for H in older_h.METHODS)
            assert len(right) == len(older) == (0 if "1e6" in function else older_h.SEEDS[dim])
            if right:
                log, half = older_h.ratio(right, older)
                assert abs(log) < half, (function, dim)


def test_the_tables_of_many_machines_are_those_of_the_figures():
    module = load("many_machines")
    page = module.PAGE.read_text()
    assert page.count("<!-- table:") == len(module.tables()) == 3
    assert module.with_tables(page, module.tables()) == page, "run benchmarks/many_machines.py"


def test_the_table_of_asynchronous_searches_is_that_of_the_trials():
    asynchronous = load("asynchronous")
    page = asynchronous.PAGE.read_text()
    assert asynchronous.with_tables(page, asynchronous.tables()) == page, (
        "run benchmarks/asynchronous.py --report"
    )


def test_the_table_of_the_constraints_is_that_of_the_rows():
    constrained = load("constrained")
    text = constrained.PAGE.read_text(encoding="utf-8")
    assert constrained.page(text) == text, "run benchmarks/constrained.py page"


def test_the_table_of_the_choices_is_that_of_the_rows():
    choices = load("choices")
    text = choices.PAGE.read_text(encoding="utf-8")
    assert choices.page(text) == text, "run benchmarks/choices.py page"
