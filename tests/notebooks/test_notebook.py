"""What a notebook shows: the cells run in a real kernel."""

import base64
import pathlib
import re

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install 'fmnes[dev]'")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install 'fmnes[dev]'")
pytest.importorskip("ipykernel", reason="needs ipykernel: pip install 'fmnes[dev]'")

# The live plot of docs/callbacks.md, drawn in each of three generations instead of every 5 seconds.
PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "callbacks.md").read_text()
LIVE = re.search(r"```python\n(import time\n.*?)```", PAGE, re.DOTALL)[1]
LIVE = LIVE.replace("seconds=5.0", "seconds=0.0").replace("maxfevals=2000", "maxfevals=32")

CELLS = {
    "search": (
        "import fmnes\n"
        "def fun(x):\n"
        "    return float((x**2).sum())\n"
        "result = fmnes.minimize(fun, [3.0] * 5, 1.0, maxfevals=402, rng=1)\n"
        "print(result.fun)"
    ),
    "result": "result",
    "history": "result.history",
    "plot": "fmnes.plot(result)",
    "runs": "fmnes.plot_runs({'a': [result]})",
    "kept": "figure = fmnes.plot(result)",
    "pyplot": "import matplotlib.pyplot\nfmnes.plot(result)",
    "progress": "r = fmnes.minimize(fun, [3.0] * 5, 1.0, maxfevals=402, rng=1, progress=True)",
    "live": f"fun = fmnes.problems.rosenbrock(10)\n{LIVE}\nprint(result.nit)",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The outputs of each cell, in a kernel that has just started."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    book = nbformat.v4.new_notebook(cells=cells)
    folder = str(tmp_path_factory.mktemp("book"))
    nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, book.cells, strict=True)}


def shown(outputs, kind):
    """What the outputs of a cell hold of one type."""
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


def test_a_result_is_a_table(outputs):
    (html,) = shown(outputs["result"], "text/html")
    (printed,) = (output.text for output in outputs["search"])
    assert f">{float(printed):.10g}</td>" in html


def test_a_history_is_a_table(outputs):
    (html,) = shown(outputs["history"], "text/html")
    assert "<th>generation_best</th>" in html
    assert "<td>402</td>" in html


@pytest.mark.parametrize("cell", ["plot", "runs", "pyplot"])
def test_a_figure_is_shown_once(cell, outputs):
    (picture,) = shown(outputs[cell], "image/png")
    assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_a_live_plot_replaces_the_one_before(outputs):
    assert len(shown(outputs["live"], "image/png")) == 1
    assert outputs["live"][-1].text == "3\n"


def test_a_figure_that_is_kept_is_not_shown(outputs):
    assert outputs["kept"] == []


def test_progress_is_a_bar(outputs):
    """The notebook's own if ipywidgets is installed, and a line of text otherwise."""
    widgets = shown(outputs["progress"], "application/vnd.jupyter.widget-view+json")
    text = "".join(o.text for o in outputs["progress"] if o.output_type == "stream")
    assert widgets or re.search(r"402/402 .*best", text)
