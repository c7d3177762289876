"""The pictures of the page about plots are those that its script draws."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.examples


def test_the_script_draws_what_the_page_shows(tmp_path, monkeypatch):
    script = runpy.run_path(str(ROOT / "examples/pictures.py"))
    monkeypatch.setattr(sys, "argv", ["pictures.py", str(tmp_path)])
    script["main"]()
    page = (ROOT / "docs/reading-the-plots.md").read_text()
    shown = set(re.findall(r"\(pictures/([\w.-]+)\)", page))
    assert shown == {path.name for path in tmp_path.iterdir()}
    assert shown < {path.name for path in (ROOT / "docs/pictures").iterdir()}  # and of other pages
    for path in tmp_path.iterdir():
        start = b"GIF89a" if path.suffix == ".gif" else b"\x89PNG"
        assert path.read_bytes().startswith(start)
