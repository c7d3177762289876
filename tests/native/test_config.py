"""Which kernels are in use: the configuration, and the environment variables that choose them."""

import ast
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest

import fmnes
from fmnes import kernels
from fmnes.cli import _doctor, main
from fmnes.kernels import _native

VARIABLES = ("FMNES_KERNELS", "FMNES_LEVEL", "FMNES_NUM_THREADS", "OMP_NUM_THREADS")
KNOWN_LEVELS = ["baseline", "avx2", "avx512", "neon"]


def python(*arguments, **variables):
    """Run a fresh interpreter with these environment variables and no other one of ours."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def value(expression, **variables):
    done = python("-c", f"import fmnes; print({expression})", **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def error(**variables):
    """The last line that `import fmnes` prints on standard error."""
    done = python("-c", "import fmnes", **variables)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


# --- Which kernels --------------------------------------------------------------------------------


@pytest.mark.parametrize("variables", [{}, {"FMNES_KERNELS": "auto"}, {"FMNES_KERNELS": ""}])
def test_the_compiled_kernels_are_the_default(variables):
    assert value("fmnes.config()['kernels']", **variables) == "native"


IN_A_SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), '''
import fmnes
result = fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 5, 1.0, maxiter=20, rng=1)
print(fmnes.config()["kernels"], result.nit, flush=True)
''')
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="NumPy refuses subinterpreters there")
def test_a_subinterpreter_works_without_the_compiled_kernels():
    done = python("-W", "ignore", "-c", IN_A_SUBINTERPRETER)
    assert done.stdout.split() == ["agnostic", "20"], done.stderr
    done = python("-W", "ignore", "-c", IN_A_SUBINTERPRETER, FMNES_KERNELS="native")
    assert "FMNES_KERNELS=native" in done.stderr


@pytest.mark.parametrize("forced", ["native", "agnostic"])
def test_either_can_be_forced(forced):
    in_use, why = value(
        "fmnes.config()['kernels'], fmnes.config()['why']", FMNES_KERNELS=forced
    ).split(maxsplit=1)
    assert in_use == forced
    assert f"FMNES_KERNELS={forced}" in why


def test_forced_agnostic_kernels_do_not_load_the_extension():
    loaded = "'fmnes.kernels._native' in __import__('sys').modules"
    assert value(loaded, FMNES_KERNELS="agnostic") == "False"
    assert value(loaded, FMNES_KERNELS="native") == "True"


def test_another_name_is_an_error():
    assert re.search(r"^ValueError: FMNES_KERNELS: .* got 'fast'$", error(FMNES_KERNELS="fast"))


# --- Levels ---------------------------------------------------------------------------------------


def test_the_best_level_of_the_machine_is_the_default():
    assert value("fmnes.config()['level']") == _native.levels_here()[-1]
    assert set(_native.levels_here()) <= set(_native.levels()) <= set(KNOWN_LEVELS)
    assert _native.levels_here()[0] == _native.levels()[0]  # which every machine of its kind has


def test_the_levels_of_the_machine_are_those_the_kernel_reports():
    """Linux lists what the processor and the operating system support together."""
    if len(_native.levels()) == 1:  # not x86-64: the one level that every such machine has
        assert _native.levels_here() == _native.levels()
        return
    with open("/proc/cpuinfo") as file:
        flags = next(line for line in file if line.startswith("flags")).split()
    needs = {
        "baseline": {"sse2"},
        "avx2": {"avx2", "fma"},
        "avx512": {"avx512f", "avx512dq", "avx512vl", "avx512bw"},
    }
    expected = [level for level, needed in needs.items() if needed <= set(flags)]
    assert _native.levels_here() == expected


@pytest.mark.parametrize("level", _native.levels_here())
def test_a_level_can_be_forced(level):
    assert value("fmnes.config()['level']", FMNES_LEVEL=level) == level


@pytest.mark.parametrize("level", sorted(set(KNOWN_LEVELS) - set(_native.levels_here())))
def test_a_level_that_the_machine_lacks_is_an_error(level):
    here = ", ".join(_native.levels_here())
    assert re.search(
        rf"^ValueError: FMNES_LEVEL: .*{here}.* got '{level}'$", error(FMNES_LEVEL=level)
    )


@pytest.mark.parametrize("forced", ["native", "agnostic"])
def test_an_unknown_level_is_an_error(forced):
    message = error(FMNES_LEVEL="sse9", FMNES_KERNELS=forced)
    assert re.search(r"^ValueError: FMNES_LEVEL: .* got 'sse9'$", message)


def test_a_level_can_be_set_in_the_process():
    chosen = _native.level()
    try:
        for level in _native.levels_here():
            _native.set_level(level)
            assert _native.level() == level
        with pytest.raises(ValueError, match=r"^level: .* got 'mmx'$"):
            _native.set_level("mmx")
        assert _native.level() == _native.levels_here()[-1]
    finally:
        _native.set_level(chosen)


# --- What is printed ------------------------------------------------------------------------------


def test_show_config_prints_what_config_returns(capsys):
    fmnes.show_config()
    lines = capsys.readouterr().out.splitlines()
    config = fmnes.config()
    assert [line[:24].strip() for line in lines] == list(config)
    printed = {line[:24].strip(): line[24:] for line in lines}
    assert printed["fmnes"] == fmnes.__version__
    assert printed["kernels"] == "native"
    assert printed["why"] == kernels.why
    assert printed["level"] == _native.level()
    assert printed["levels built"] == ", ".join(_native.levels())
    assert printed["threads"] == str(fmnes.get_num_threads())
    assert printed["compiler"] == _native.compiler()


def test_the_configuration_has_the_same_entries_without_the_extension():
    names = "list(fmnes.config())"
    assert value(names, FMNES_KERNELS="agnostic") == value(names, FMNES_KERNELS="native")
    assert value("fmnes.config()['level']", FMNES_KERNELS="agnostic") == "None"


@pytest.mark.parametrize("forced", ["native", "agnostic"])
def test_doctor(forced):
    done = python("-m", "fmnes", "doctor", FMNES_KERNELS=forced)
    assert (done.returncode, done.stderr) == (0, "")
    config = python("-c", "import fmnes; fmnes.show_config()", FMNES_KERNELS=forced).stdout
    assert done.stdout.startswith(config + "matplotlib ")
    checks = done.stdout.removeprefix(config).split("\n")
    searches = [line for line in checks if ": ok, " in line]
    assert len(searches) == (len(_native.levels_here()) if forced == "native" else 1)


@pytest.mark.parametrize(
    ("successes", "values", "status"),
    [([True, True], [1.0, 1.0], 0), ([True, False], [1.0, 1.0], 1), ([True, True], [1.0, 1.5], 1)],
)
def test_doctor_fails_where_a_search_fails_or_levels_differ(monkeypatch, successes, values, status):
    results = [
        types.SimpleNamespace(success=success, x=np.array([x]))
        for success, x in zip(successes, values, strict=True)
    ]
    monkeypatch.setattr(_native, "levels_here", lambda: [_native.level()] * 2)
    monkeypatch.setattr(_doctor, "_search", lambda name: results.pop(0))
    assert main(["doctor"]) == status


def test_the_command_line_lists_its_commands():
    done = python("-m", "fmnes", "--help")
    assert done.returncode == 0
    assert "doctor" in done.stdout
    done = python("-m", "fmnes")
    assert done.returncode == 2
    assert "COMMAND" in done.stderr
    assert python("-m", "fmnes", "--version").stdout == f"fmnes {fmnes.__version__}\n"


# --- The stub -------------------------------------------------------------------------------------


def stub_of(nodes, prefix=""):
    """The functions and methods of _native.pyi, each with the names of its arguments.

    A class whose name begins with an underscore is there for others to inherit from.
    """
    names = {}
    bodies = {node.name: node.body for node in nodes if isinstance(node, ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            parts = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names[prefix + node.name] = [part.arg for part in parts]
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for body in (node.body, *(bodies[base.id] for base in node.bases)):
                names |= stub_of(body, f"{node.name}.")
    return {name: parts for name, parts in names.items() if parts != ["self"]}  # properties


def runtime_of(scope, prefix=""):
    """The same from the extension itself; properties are left out."""
    names = {}
    for name, value in vars(scope).items():
        if hasattr(value, "__nb_signature__"):  # such as "def f(x: ndarray[dtype=float64]) -> None"
            inner = re.search(r"\((.*)\)", value.__nb_signature__[0][0].split("->")[0])[1]
            parts = re.sub(r"\[[^][]*\]", "", re.sub(r"\[[^][]*\]", "", inner)).split(",")
            parts = [part.split(":")[0].strip() for part in parts]
            names[prefix + name] = [part for part in parts if part not in ("", "*", "/")]
        elif isinstance(value, type):
            names |= runtime_of(value, f"{name}.")
    return names


def test_the_stub_names_what_the_extension_has():
    stub = pathlib.Path(kernels.__file__).with_name("_native.pyi").read_text()
    assert stub_of(ast.parse(stub).body) == runtime_of(_native)
