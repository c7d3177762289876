"""docs/command-line.md: what it types is run, and what it shows is what comes."""

import contextlib
import doctest
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from fmnes import kernels
from fmnes.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands():
    """Pairs of a command and the output that is shown below it."""
    for block in re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            yield part.partition("\n")[::2]


@pytest.mark.skipif(
    kernels.in_use != "native", reason="the figures of the page are those of the compiled kernels"
)
def test_the_page_shows_what_happens(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the extra fmnes[plot]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    found = list(commands())
    assert len(found) == 9
    for command, shown in found:
        words = shlex.split(command)
        if words[0] == "cat":  # a file that the reader is to have
            (tmp_path / words[1]).write_text(shown)
            continue
        assert words[0] == "fmnes"
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main([word.replace("python3", sys.executable) for word in words[1:]])
        assert doctest.OutputChecker().check_output(shown, output.getvalue(), FLAGS), command
