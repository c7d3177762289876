"""What `import fmnes` loads, what it offers, and what it says where an extra is missing."""

import inspect
import subprocess
import sys
import types

import pytest

import fmnes
from fmnes.algorithms import METHODS

# None of them may be loaded before somebody asks for what needs it.
OPTIONAL = [
    "scipy",
    "matplotlib",
    "tqdm",
    "torch",
    "jax",
    "jaxlib",
    "array_api_strict",
    "multiprocessing",
    "concurrent.futures.process",
]
HEAVY = ["asyncio", "email", "unittest", "xml"]  # of the standard library


def python(code, *flags):
    """Standard output of a fresh interpreter, in which warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *flags, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_nothing_optional():
    loaded = python(
        "import sys, numpy; before = set(sys.modules); import fmnes; "
        "print('\\n'.join(set(sys.modules) - before))"
    ).split()
    assert "fmnes" in loaded
    assert [name for name in OPTIONAL + HEAVY if name in loaded] == []


def test_a_search_loads_nothing_optional():
    loaded = python(
        "import sys, numpy, numpy.random; before = set(sys.modules); import fmnes; "
        "fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 3, 2.0, maxiter=5); "
        "print('\\n'.join(set(sys.modules) - before))"
    ).split()
    assert [name for name in OPTIONAL if name in loaded] == []


EXPERIMENTS = (
    "fmnes.experiments",
    "fmnes.benchmarking",
    "fmnes.integrations.coco",
    "fmnes.integrations._coco",
    "coco",
)
COMMAND_LINE = """
import contextlib, io
from fmnes.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main({})
"""


@pytest.mark.parametrize(
    "code",
    ["import fmnes", COMMAND_LINE.format(["run", "--help"]), COMMAND_LINE.format(["methods"])],
    ids=["import", "run", "methods"],
)
def test_nothing_of_the_experiments_is_loaded(code):
    loaded = python(f"import sys\n{code}\nprint('\\n'.join(sys.modules))").split()
    assert "fmnes" in loaded
    assert [name for name in loaded if name.startswith(EXPERIMENTS)] == []


def test_it_prints_nothing_and_logs_nothing():
    """Nothing on either stream unless asked for."""
    code = "import fmnes; fmnes.minimize(lambda x: (x**2).sum(), [3.0] * 3, 2.0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_nothing_depends_on_assertions():
    """With -O, which drops them, the checks are still there."""
    code = """
import fmnes
try:
    fmnes.minimize(lambda x: 0.0, [3.0], -1.0)
except ValueError as error:
    print(error)
"""
    assert python(code, "-O").startswith("sigma0: ")


# --- The public names -----------------------------------------------------------------------------


def public_names():
    return {
        name: value
        for name, value in vars(fmnes).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }


def test_every_public_name_is_documented():
    for name, value in public_names().items():
        if name == "METHODS":
            continue  # a dict; fmnes.algorithms documents it
        assert inspect.getdoc(value), name
        if inspect.isclass(value):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_") and callable(member):
                    assert inspect.getdoc(member), f"{name}.{attribute}"
    assert fmnes.__doc__
    assert fmnes.problems.__doc__


def test_completion_shows_the_public_names():
    """And the modules that users import from, not those that the library is made of."""
    modules = {name for name in dir(fmnes) if isinstance(getattr(fmnes, name), types.ModuleType)}
    assert {"evaluate", "problems"} <= modules <= {"evaluate", "integrations", "jax", "problems"}
    assert set(dir(fmnes)) - modules - {"__version__"} == public_names().keys()


def test_every_public_name_is_typed():
    for name, value in public_names().items():
        if inspect.isfunction(value):
            signature = inspect.signature(value)
            assert signature.return_annotation is not signature.empty, name
            for parameter in signature.parameters.values():
                assert parameter.annotation is not parameter.empty, (name, parameter.name)


def test_every_argument_of_minimize_and_optimizer_is_documented():
    for function in (fmnes.minimize, fmnes.Optimizer):
        text = inspect.getdoc(function)
        for name in inspect.signature(function).parameters:
            assert name in text, (function.__name__, name)


def test_every_method_says_where_it_is_from(method):
    """The paper in the module's docstring, and a settings class with a name of its own."""
    module = METHODS[method]
    assert any(str(year) in module.__doc__ for year in range(1990, 2030)), method
    assert getattr(fmnes, module.Settings.__name__) is module.Settings


def test_the_version_is_one():
    assert fmnes.__version__.count(".") == 2


# --- Extras ---------------------------------------------------------------------------------------


def test_plot_says_what_to_install(monkeypatch):
    result = fmnes.minimize(lambda x: (x**2).sum(), [3.0], 2.0, maxiter=2, rng=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'fmnes\[plot\]'"):
        fmnes.plot(result)


def test_the_searches_for_jax_say_what_to_install():
    said = python(
        "import sys; sys.modules['jax'] = None\n"
        "try:\n    import fmnes.jax\nexcept ImportError as error:\n    print(error)"
    )
    assert "pip install 'fmnes[jax]'" in said


def test_progress_works_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    fmnes.minimize(lambda x: (x**2).sum(), [3.0], 2.0, maxiter=2, rng=1, progress=True)
    assert "evaluations" in capsys.readouterr().err


def test_a_file_says_which_library_it_needs(tmp_path):
    """A search that was saved with arrays of a library that is not there."""
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    path = tmp_path / "search.npz"
    fmnes.Optimizer(strict.ones(3), 1.0, rng=1).save(path)
    code = f"""
import sys
sys.modules["array_api_strict"] = None
import fmnes
try:
    fmnes.Optimizer.load({str(path)!r})
except ImportError as error:
    print(error)
"""
    assert "array_api_strict" in python(code)
