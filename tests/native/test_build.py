"""Installing: with a compiler, without one, and with errors; and what ends up in the extension.

Every test builds a copy of the source in an isolated environment, as ``pip install`` does.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

pytestmark = pytest.mark.build

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ["CMakeLists.txt", "LICENSE", "README.md", "native", "pyproject.toml", "src"]
SEARCH = """
import fmnes
result = fmnes.minimize(lambda x: float((x**2).sum()), [3.0] * 5, 2.0, ftarget=1e-8, rng=1)
assert result.success, result
fmnes.show_config()
"""


def clean_environment():
    """This process's, without the variables that choose a compiler or kernels."""
    ours = ("FMNES_", "CXX", "CC", "CFLAGS", "LDFLAGS", "CMAKE_", "SKBUILD_", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def copy_of_the_source(target):
    target.mkdir()
    for name in SOURCE:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target)
    return target


def build(folder, *settings, **variables):
    """Build a wheel of folder/source: what pip printed, as one line, and the wheel if any."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "-w", folder / "wheel"]
        + [f"--config-settings={setting}" for setting in settings]
        + [folder / "source"],
        env=clean_environment() | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return " ".join(done.stdout.split()), next((folder / "wheel").glob("*.whl"), None)


def holds_the_extension(wheel):
    return any(
        "_native." in name and ".pyi" not in name for name in zipfile.ZipFile(wheel).namelist()
    )


def installed(folder, wheel, code, **variables):
    """Install the wheel in a fresh environment, unless it is there, and run code with it."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
    return subprocess.run(
        [python, "-c", code],
        env=clean_environment() | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


# --- With a compiler ------------------------------------------------------------------------------


one_process = pytest.mark.xdist_group("compiled")  # each process would compile a wheel of its own


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A wheel built with the machine's compiler, and the folder that it was built in."""
    folder = tmp_path_factory.mktemp("compiled")
    copy_of_the_source(folder / "source")
    log, wheel = build(folder, f"build-dir={folder / 'build'}")
    assert wheel, log
    return folder, wheel


@one_process
def test_with_a_compiler_the_kernels_are_native(compiled):
    folder, wheel = compiled
    assert holds_the_extension(wheel)
    done = installed(folder, wheel, SEARCH)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^kernels +native$", done.stdout, re.MULTILINE)
    script = subprocess.run(
        [folder / "venv" / "bin" / "fmnes", "doctor"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert script.returncode == 0, script.stdout + script.stderr
    assert script.stdout.startswith(done.stdout)


needs_levels = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux",
    reason="looks at the levels of x86-64 with the tools of Linux",
)


@needs_levels
@one_process
def test_no_code_of_one_level_is_reached_from_another(compiled):
    """What the linker may merge is named after its level.

    Of every weak symbol (an inline function, an instance of a template) one copy is kept, from any
    of the object files: without the level in its name it could be the one for AVX-512.
    """
    objects = sorted(compiled[0].glob("build/**/level_*.dir/**/*.o"))
    levels = [re.search(r"level_(\w+)\.dir", str(path))[1] for path in objects]
    assert levels == ["avx2", "avx2", "avx512", "avx512", "baseline", "baseline"]
    for level, path in zip(levels, objects, strict=True):
        lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        symbols = [line.split()[1:] for line in lines.splitlines() if len(line.split()) == 3]
        own = f"{len(level)}{level}"  # the namespace in a mangled name
        assert any(own in name for _, name in symbols)
        assert [name for kind, name in symbols if kind in "WVuBDRT" and own not in name] == []


@needs_levels
@one_process
def test_only_a_level_has_its_instructions(compiled):
    """The 256-bit and 512-bit registers are used where they should be and nowhere else."""
    for path in compiled[0].glob("build/**/*.o"):
        code = subprocess.run(["objdump", "-d", path], capture_output=True, check=True).stdout
        has_ymm, has_zmm = b"%ymm" in code, b"%zmm" in code
        if "level_avx512" in str(path):
            assert has_zmm, path
        elif "level_avx2" in str(path):
            assert has_ymm, path
            assert not has_zmm, path
        else:
            assert not has_ymm, path
            assert not has_zmm, path


# --- Without --------------------------------------------------------------------------------------


def test_without_a_compiler_the_kernels_are_agnostic(tmp_path):
    copy_of_the_source(tmp_path / "source")
    (tmp_path / "empty").mkdir()
    nothing = str(tmp_path / "empty")
    log, wheel = build(tmp_path, PATH=nothing)  # CMake and Ninja come by build isolation
    assert wheel, log
    assert "fmnes: no working C++ compiler was found" in log
    assert not holds_the_extension(wheel)

    done = installed(tmp_path, wheel, SEARCH)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^kernels +agnostic$", done.stdout, re.MULTILINE)
    assert re.search(
        r"^why +the extension is not built: there was no C\+\+20 compiler",
        done.stdout,
        re.MULTILINE,
    )
    forced = installed(tmp_path, wheel, "import fmnes", FMNES_KERNELS="native")
    assert forced.returncode != 0
    assert "ImportError: FMNES_KERNELS=native, but the extension is not built" in forced.stderr


def test_a_compiler_without_cxx20_counts_as_none(tmp_path):
    copy_of_the_source(tmp_path / "source")
    old = tmp_path / "old-c++"
    old.write_text(
        '#!/bin/sh\ncase "$*" in *-std=*++2*) echo unknown -std >&2; exit 1;; esac\nexec c++ "$@"\n'
    )
    old.chmod(0o755)
    log, wheel = build(tmp_path, CXX=str(old))
    assert wheel, log
    assert re.search(r"fmnes: \S*old-c\+\+ cannot compile C\+\+20", log)
    assert not holds_the_extension(wheel)


@pytest.mark.parametrize("where", ["missing", "empty"])
def test_without_pythons_headers_nothing_is_compiled(tmp_path, where):
    copy_of_the_source(tmp_path / "source")
    # What scikit-build-core hands to CMake is where Python says that they are, there or not.
    (tmp_path / "empty").mkdir()
    log, wheel = build(tmp_path, f"cmake.define.Python_INCLUDE_DIR={tmp_path / where}")
    assert wheel, log
    assert "fmnes: Python's headers were not found" in log
    assert not holds_the_extension(wheel)


def test_an_error_in_our_own_code_is_an_error(tmp_path):
    source = copy_of_the_source(tmp_path / "source")
    with open(source / "native" / "dispatch.cpp", "a") as file:
        file.write("\n#error a mistake\n")
    log, wheel = build(tmp_path)
    assert wheel is None
    assert "a mistake" in log
