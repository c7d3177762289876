"""COCO's data: problems that were solved separately become one archive per solver, and a page.

COCO writes a text file of each kind (.info, .dat, .tdat, ...) for a function, or for a function and
a dimension, and appends instance after instance. `merge` gives the same files.
"""

import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from fmnes._files import replacing
from fmnes.benchmarking.packages import require
from fmnes.integrations._coco_problems import RECORDS

Solved = tuple[Path, dict[str, Any]]  # the folder of a problem, and its record
_DAMAGE = (EOFError, gzip.BadGzipFile, tarfile.TarError, zlib.error)


def pack(problems: Sequence[Solved], archive: Path) -> None:
    """Write one archive with these problems of a solver, as if COCO had run them one by one.

    It contains all that cocopp reads, which is less than half of what COCO wrote.
    """
    with tempfile.TemporaryDirectory() as scratch:
        merged = Path(scratch, archive.stem)
        merge(problems, merged)
        for by_time in merged.glob("data_*/*.tdat"):
            by_time.write_text(first_and_last(by_time.read_text()))
        _write_archive(merged, archive)


def merge(problems: Sequence[Solved], merged: Path) -> None:
    """Join the data of problems, which are ordered by function, dimension and instance."""
    merged.mkdir(parents=True)
    lines = "".join(f"{json.dumps(record)}\n" for _, record in problems)
    (merged / RECORDS).write_text(lines)
    folders = [folder for folder, _ in problems]
    for folder in folders:
        for source in sorted(folder.glob("data_*/*")):
            target = merged / source.relative_to(folder)
            target.parent.mkdir(exist_ok=True)
            with target.open("ab") as file:
                file.write(source.read_bytes())
    infos = [info for folder in folders for info in folder.glob("*.info")]
    infos.sort(key=lambda info: info.name)
    for name, of_function in itertools.groupby(infos, key=lambda info: info.name):
        (merged / name).write_text(_joined(info.read_text() for info in of_function))


def first_and_last(text: str) -> str:
    """Return two lines after the title of each run, like cocopp's reduce_size for a .tdat."""
    runs = [run.splitlines(keepends=True) for run in re.split("^(?=%)", text, flags=re.M) if run]
    return "".join("".join([*run[:2], *run[2:][-1:]]) for run in runs)


def _joined(infos: Iterable[str]) -> str:
    """Return the .info file of a function: three lines per dimension, ending with the instances."""
    instances: dict[str, str] = {}  # by the two lines before and the name of the data file
    for info in infos:
        head, _, last = info.rpartition("\n")
        data_file, _, instance = last.partition(", ")
        key = f"{head}\n{data_file}"
        instances[key] = f"{instances[key]}, {instance}" if key in instances else instance
    return "\n".join(f"{key}, {listed}" for key, listed in instances.items())


def _write_archive(folder: Path, archive: Path) -> None:
    """Write a .tgz, complete or not at all; the same data give the same bytes."""
    with (
        replacing(archive) as part,
        open(part, "wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                tar.add(path, path.relative_to(folder.parent), filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


def solver_in(archive: Path) -> str:
    """Return the solver of an archive: the name of the only folder in it."""
    try:
        with gzip.open(archive) as content, tarfile.open(fileobj=content, mode="r:") as tar:
            members = [tarfile.data_filter(member, ".") for member in tar]  # named as extracted
            while content.read(2**20):  # the checksum is at the end, where tarfile does not look
                pass
    except _DAMAGE as error:
        raise ValueError(f"sources: expected a whole .tgz, got {archive}: {error}") from error
    paths = [PurePosixPath(member.name) for member in members]
    folders = sorted({path.parts[0] for path in paths if len(path.parts) > 1})
    if len(folders) != 1:
        found = ", ".join(folders) or "none"
        raise ValueError(f"sources: expected one folder in {archive}, got {found}")
    return folders[0]


def write_page(archives: Mapping[str, Path], page: Path) -> Path:
    """Let cocopp write a page that compares the solvers, and return its index."""
    require("coco", "cocopp", "six")
    page.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:  # cocopp writes beside what it reads
        for archive in archives.values():
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, filter="data")
        # In a process of its own: cocopp configures matplotlib, searches online, and prints.
        answer = subprocess.run(  # noqa: S603 - no input of others
            [sys.executable, "-m", "cocopp", "-o", str(page.resolve()), *archives],
            cwd=scratch,
            env=os.environ | {"MPLBACKEND": "Agg"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    index = page / "index.html"
    if answer.returncode or not index.exists():
        raise RuntimeError(f"cocopp failed:\n{answer.stdout[-2000:]}")
    return index
