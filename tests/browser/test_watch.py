"""The page of `fmnes watch` in headless Chromium, beside a run that goes on."""

import json
import re
import signal
import time

import pytest

from cli.common import end_of, history, nrows, result, start, until

pytestmark = pytest.mark.browser

OBJECTIVE = """\
import time
def f(x):
    time.sleep(0.01)
    if x[0] > 3.5:
        raise ValueError("<b>too large</b>")
    return float((x**2).sum())
"""


@pytest.fixture
def url(tmp_path):
    """Where `fmnes watch` shows the folder `out`, that has no run in it yet."""
    (tmp_path / "out").mkdir()
    process = start("watch", "out", "--port", "0", cwd=tmp_path)
    yield process.stdout.readline().split()[0]
    status, _, err = end_of(process, signal.SIGINT)
    assert (status, err) == (0, "")


def text(browser, name):
    return browser.find_element("id", name).text


def number(browser, name):
    return float(text(browser, name).replace(",", ""))


def run(tmp_path, evaluations):
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    words = (
        "run objective:f --x0 3 --dim 5 --sigma0 1 --rng 1 --on-error penalize --no-plot --quiet"
    )
    words += f" --method cr-fm-nes --maxfevals {evaluations} --out out"
    return start(*words.split(), cwd=tmp_path)


def test_the_page_follows_a_run_to_its_end(browser, url, tmp_path):
    browser.get(url)
    until(lambda: text(browser, "state") == "waiting")
    assert text(browser, "message") == "There is no run in this folder yet."

    process = run(tmp_path, 801)
    until(lambda: text(browser, "state") == "running" and text(browser, "nfev") != "–")
    assert re.fullmatch(r"\d+:\d\d:\d\d", text(browser, "left"))
    seen = []
    while text(browser, "state") == "running":
        now = [text(browser, name) for name in ("nfev", "best", "sigma", "condition", "rate")]
        if not seen or now[0] != seen[-1][0]:
            seen.append(now)
        time.sleep(0.1)
    assert len(seen) >= 3  # it moved while the run went on, once a second
    for column in list(zip(*seen, strict=True))[:4]:
        assert len(set(column)) >= 3
    process.communicate(timeout=60)
    assert process.returncode == 0

    until(lambda: text(browser, "state") == "ended: maxfevals")
    found, columns = result(tmp_path / "out"), history(tmp_path / "out")
    assert text(browser, "title") == "objective:f"
    assert text(browser, "about") == "cr-fm-nes, 5 variables, out"
    assert text(browser, "message") == found["message"]
    assert number(browser, "nfev") == found["nfev"] == 801
    assert number(browser, "best") == pytest.approx(found["fun"], rel=1e-5)
    assert number(browser, "sigma") == pytest.approx(columns["sigma"][-1], rel=1e-3)
    assert number(browser, "condition") == pytest.approx(columns["condition"][-1], rel=1e-3)
    phases = {1: "moving", 2: "adapting", 3: "converging"}
    assert text(browser, "phase") == phases[columns["phase"][-1]]
    assert number(browser, "nfailed") == found["nfailed"] > 0
    assert not browser.find_element("id", "left").is_displayed()  # it has ended
    assert_best_candidate(browser, found["x"])
    # As text: what an objective says must not become part of the page.
    assert text(browser, "failure-last") == "ValueError: <b>too large</b>"
    assert_curves(browser, columns)
    assert_hovering_shows_values(browser, columns)
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [entry for entry in severe if url in entry["message"]] == []  # not of an earlier page


def assert_best_candidate(browser, x):
    head = text(browser, "candidate-head")
    shown = [float(word) for word in head.partition("(")[0].split(",")]
    assert shown == pytest.approx(x, rel=1e-4)
    assert head.endswith("(5 variables)")
    browser.find_element("css selector", "#candidate summary").click()
    lines = [line.split(" = ") for line in text(browser, "candidate-all").splitlines()]
    assert {name: float(value) for name, value in lines} == {f"x[{i}]": x[i] for i in range(5)}


def assert_curves(browser, columns):
    """The right number of curves in each chart, each with a point for each generation."""
    counts = {"objective": 3, "steps": 3, "shape": 2, "times": 1, "failures": 1}
    for name, count in counts.items():
        curves = points(browser, f"#{name} path.curve")
        assert len(curves) == count, name
        for curve in curves:
            across = [x for x, _ in curve]
            assert across == sorted(across)
            if name != "objective":  # whose median is infinite where half of them failed
                assert len(across) == len(columns["nfev"])
    (best,) = points(browser, "#objective path.c0")
    assert len(best) == len(columns["nfev"])
    down = [y for _, y in best]
    assert down == sorted(down)


def points(browser, selector):
    """The points of each path; all at once, because they are drawn anew every second."""
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.getAttribute('d'))"
    found = browser.execute_script(script, selector)
    words = [re.split("[ML]", path.replace("h0", ""))[1:] for path in found]
    return [[tuple(map(float, word.split(","))) for word in path] for path in words]


def assert_hovering_shows_values(browser, columns):
    from selenium.webdriver import ActionChains

    chart = browser.find_element("css selector", "#failures svg")
    right = chart.size["width"] // 2 - 2  # from the middle
    ActionChains(browser).move_to_element_with_offset(chart, right, 0).perform()
    tip = browser.find_element("css selector", "#failures .tip").text.splitlines()
    assert tip[0] == "801 evaluations"
    assert tip[1].split()[-1] == str(int(columns["nfailed"][-1]))


def test_a_run_that_is_killed_and_a_server_that_is_gone(browser, url, tmp_path):
    browser.get(url)
    process = run(tmp_path, 100_000)
    until(lambda: nrows(tmp_path / "out") >= 2)
    until(lambda: text(browser, "state") == "running")
    end_of(process, signal.SIGKILL)
    until(lambda: text(browser, "state") == "stopped")
    assert "fmnes resume" in text(browser, "message")


def test_the_page_says_when_nobody_answers(browser, tmp_path):
    (tmp_path / "out").mkdir()
    process = start("watch", "out", cwd=tmp_path)
    browser.get(process.stdout.readline().split()[0])
    until(lambda: text(browser, "state") == "waiting")
    end_of(process, signal.SIGINT)
    until(lambda: text(browser, "state") == "no answer")


def test_named_variables_are_shown_by_name(browser, url, tmp_path):
    (tmp_path / "objective.py").write_text("def f(p):\n    return p['rate'] + p['layers']\n")
    space = {
        "rate": {"type": "log", "low": 1e-3, "high": 1},
        "layers": {"type": "int", "low": 1, "high": 9},
    }
    (tmp_path / "space.json").write_text(json.dumps(space))
    words = "run objective:f --space space.json --rng 1 --maxiter 20 --out out --quiet --no-plot"
    process = start(*words.split(), cwd=tmp_path)
    process.communicate(timeout=60)
    browser.get(url)
    until(lambda: text(browser, "state") == "ended: maxiter")
    best = result(tmp_path / "out")["best"]
    shown = text(browser, "candidate-head")
    assert shown == f"rate = {best['rate']}, layers = {best['layers']} (2 variables)"
    assert text(browser, "about") == "auto, 2 variables, out"
