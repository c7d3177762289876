"""The import graph of src/fmnes, read from the source: no cycles, and imports point one way.

Only the imports of a running program count: those under `if TYPE_CHECKING:` do not.
"""

import ast
import re
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

# From the bottom to the top: a module imports from its own layer and from those below. A package
# stands for all its modules that are not listed. `fmnes` is the file src/fmnes/__init__.py.
LAYERS = [
    ("_version", "_arrays", "_checks", "_early_interrupt", "_files", "_html", "_json"),
    ("kernels",),
    ("draws", "algorithms", "problems", "_config"),
    ("engines",),
    # What a search is given, and what it records.
    (
        "variables",
        "constraints",
        "points",
        "records",
        "runs.restarts",
        "arguments",
    ),
    ("_population", "_signals"),
    ("evaluate",),
    ("storage",),
    ("_coordinates", "_told", "_search", "_driven", "_optimizer"),
    ("runs",),
    ("_progress",),
    ("_loop", "_reevaluate"),
    ("_minimize",),
    ("_plot", "integrations.scipy"),
    ("fmnes",),
    ("integrations", "jax", "benchmarking", "cli", "experiments", "__main__"),
]

# The compiled kernels may be missing, so that whoever needs them tries to import them.
COMPILED = {"fmnes.kernels._native", "fmnes.kernels.native"}


class Import(NamedTuple):
    module: str  # that imports
    imported: str
    late: bool  # inside a function
    tried: bool  # inside try: the module does without if it is missing

    def __str__(self):
        return f"{self.module} -> {self.imported}"


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in SOURCE.rglob("*.py")}
MODULES = FILES.keys() | COMPILED


def is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def statements(node, late=False, tried=False):
    """Every import statement below `node` that may run, and whether it is late or tried."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, late, tried
        elif is_type_checking(child):
            for other in child.orelse:
                yield from statements(other, late, tried)
        elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from statements(child, late or function, tried or isinstance(child, ast.Try))


def imports_of(module):
    source = ast.parse(FILES[module].read_text(encoding="utf-8"))
    for statement, late, tried in statements(source):
        if isinstance(statement, ast.Import):
            names = {alias.name for alias in statement.names}
        else:
            assert statement.level == 0, f"{module}: a relative import; write the whole name"
            whole = [f"{statement.module}.{alias.name}" for alias in statement.names]
            names = {name if name in MODULES else statement.module for name in whole}
        yield from (Import(module, name, late, tried) for name in sorted(names))


IMPORTS = [found for module in sorted(FILES) for found in imports_of(module)]
OWN = [found for found in IMPORTS if found.imported in MODULES]
OTHERS = [found for found in IMPORTS if found.imported not in MODULES]


HEIGHT = {part: height for height, parts in enumerate(LAYERS) for part in parts}


def layer(module):
    name = module.removeprefix("fmnes.")
    while name not in HEIGHT:
        assert "." in name, f"{module} has no layer: add it to LAYERS"
        name = name.rpartition(".")[0]
    return HEIGHT[name]


def lines(violations):
    return "\n".join(sorted({str(found) for found in violations}))


def test_no_import_against_the_layers():
    upwards = [found for found in OWN if layer(found.imported) > layer(found.module)]
    assert not upwards, f"imports from a higher layer:\n{lines(upwards)}"


def test_no_cycle():
    graph = {module: set() for module in MODULES}
    for found in OWN:
        if found.imported != found.module:
            graph[found.module].add(found.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("a cycle: " + " <- ".join(error.args[1]))


# --- Optional packages ----------------------------------------------------------------------------


def required_packages():
    """The dependencies of pyproject.toml that are not extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in project["dependencies"]}


ALWAYS_THERE = sys.stdlib_module_names | required_packages()


def optional(found):
    return found.imported.split(".")[0] not in ALWAYS_THERE | {"fmnes"}


def modules_that_need_an_extra():
    """Those that cannot be imported without an optional package, and the compiled kernels."""
    needed = [found for found in IMPORTS if not found.late and not found.tried]
    needing = COMPILED | {found.module for found in needed if optional(found)}
    while True:
        more = {f.module for f in needed if f.imported in needing - COMPILED}
        if more <= needing:
            return needing
        needing |= more


def test_no_late_import_of_our_own_modules():
    """Inside a function stand optional packages, and modules that cannot do without one."""
    needing = modules_that_need_an_extra()
    late = [found for found in OWN if found.late and found.imported not in needing]
    assert not late, f"imports inside functions:\n{lines(late)}"


@pytest.mark.parametrize("start", ["fmnes", "fmnes.cli"])
def test_no_optional_package_is_loaded_unasked(start):
    """By the library and the command line; modules of an integration may need its package."""
    loaded, more = set(), {start}
    while more:
        loaded |= more
        found = [f for f in OWN if f.module in more and not f.late]
        more = {f.imported for f in found} - loaded
    early = [f for f in OTHERS if f.module in loaded and not f.late and optional(f)]
    assert not early, f"imports of optional packages:\n{lines(early)}"
