"""Every Python block of the pages runs: `>>>` blocks as doctests, the others as they stand.

What a block of the latter kind claims to print (`# prints: ...`) is a line that it prints.
The blocks of a page share their names and run in order, in an empty folder, with warnings as
errors. What a block needs beyond the extra `dev` is said by a comment above it,

    <!-- needs: distributed (fmnes[dask]) -->

or for all blocks of a page by `<!-- page needs: ... -->`: package, and how it is installed.
"""

import contextlib
import doctest
import inspect
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import fmnes

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
README = DOCS.parent / "README.md"
STAND_INS = Path(__file__).parent / "stand_ins"  # small modules in place of large packages
LANGUAGES = {"python", "text", "console", "toml", "yaml", "json"}

# Which target has the package; `make test` runs the pages that need none of them.
MARKS = {
    "torch": pytest.mark.arrays,
    "jax": pytest.mark.arrays,
    "distributed": pytest.mark.pools,
    "ray": pytest.mark.pools,
    "mpi4py": pytest.mark.pools,
    "submitit": pytest.mark.pools,
    "gymnasium": pytest.mark.examples,
    "mujoco": pytest.mark.examples,
    "sklearn": pytest.mark.examples,
    "py_wake": pytest.mark.examples,
    "evosax": pytest.mark.examples,
    "nevergrad": pytest.mark.examples,
}
FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"<!-- needs: (\w+) \((.+)\) -->\n\n?\Z")
PAGE_NEEDS = re.compile(r"<!-- page needs: (\w+) \((.+)\) -->")


class Block(NamedTuple):
    source: str
    line: int
    needs: tuple[str, str] | None  # a package, and how it is installed


def blocks_of(page):
    text = page.read_text()
    whole = PAGE_NEEDS.search(text)
    for fence in FENCE.finditer(text):
        if fence["language"] == "python":
            needs = whole or NEEDS.search(text, 0, fence.start())
            line = text.count("\n", 0, fence.start()) + 1
            yield Block(fence["source"], line, needs and needs.groups())


def cases():
    """A page without what it needs, then once more for each package with the blocks about it."""
    for page in [README, *PAGES]:
        name = page.name if page == README else str(page.relative_to(DOCS))
        for needs in dict.fromkeys(block.needs for block in blocks_of(page)):
            mark = MARKS.get(needs[0], ()) if needs else ()
            case = name if needs is None else f"{name}-{needs[0]}"
            yield pytest.param(page, needs, id=case, marks=mark)


@pytest.mark.parametrize(("page", "needs"), list(cases()))
def test_blocks_run(page, needs, tmp_path, monkeypatch):
    if needs is not None:
        package, install = needs
        if (STAND_INS / f"{package}.py").exists():
            monkeypatch.syspath_prepend(STAND_INS)
        pytest.importorskip(package, reason=f"{page.name} needs {package}: {install}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.needs in (None, needs):
            run(block, page, names)


def run(block, page, names):
    if ">>> " not in block.source:
        code = "\n" * block.line + block.source  # so that tracebacks have the page's lines
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(code, str(page), "exec"), names)
        shown = re.findall(r"^# prints: (.*)$", block.source, re.MULTILINE)
        assert set(shown) <= set(output.getvalue().splitlines())
        return
    parser, runner, said = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False), []
    examples = parser.get_doctest(block.source, names, page.stem, str(page), block.line)
    runner.run(examples, out=said.append, clear_globs=False)
    names.update(examples.globs)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_block_says_what_it_is(page):
    """What is in no language, in one of another name or in no block would be run by nobody."""
    text = page.read_text()
    for fence in FENCE.finditer(text):
        language = fence["language"]
        assert language in LANGUAGES or re.match(r"\{[a-z-]+\}", language), fence[0][:80]
    assert not re.search(r"^ *>>> .*", FENCE.sub("", text), re.MULTILINE)


PUBLIC = {name: value for name, value in vars(fmnes).items() if name[0] != "_" and callable(value)}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_reference_with_an_example(name):
    text = "\n".join(page.read_text() for page in PAGES)
    assert re.search(rf"^\.\. auto\w+:: (fmnes\.)?{name}$", text, re.MULTILINE)
    # A Cluster needs Dask or Ray: cluster.md has it run on both.
    assert name == "Cluster" or ">>> " in inspect.getdoc(PUBLIC[name])


def test_every_page_is_in_the_table_of_contents():
    """Once, or it is part of another page. (Sphinx says so too, but only to those who build.)"""
    listed, parts = [], {DOCS / "index.md"}
    for page in PAGES:
        for fence in FENCE.finditer(page.read_text()):
            if fence["language"] == "{toctree}":
                entries = re.findall(r"^(?:.+<)?([\w/-]+)>?$", fence["source"], re.MULTILINE)
                listed += [page.parent / f"{entry}.md" for entry in entries]
            elif fence["language"].startswith("{include}"):
                parts.add(page.parent / fence["language"].split()[1])
    assert sorted(listed) == sorted(set(PAGES) - parts)
