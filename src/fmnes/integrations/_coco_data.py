"""COCO's data: the folders of single problems become one of a solver, and cocopp's page.

COCO writes a text file of each kind (.info, .dat, .tdat, ...) for a function, or for a function and
a dimension, and appends instance after instance. The same files come out here from problems that
were solved apart, in whatever order.
"""

import gzip
import itertools
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from fmnes.experiments.extras import require
from fmnes.integrations._coco_problems import RECORD

_DAMAGE = (EOFError, gzip.BadGzipFile, tarfile.TarError, zlib.error)


def pack(folders: Sequence[Path], archive: Path) -> None:
    """One archive with these problems of a solver, as if COCO had run them one by one.

    It holds all that cocopp reads, and is less than half as long as with all that COCO wrote.
    """
    with tempfile.TemporaryDirectory() as scratch:
        merged = Path(scratch, archive.stem)
        merge(folders, merged)
        for by_time in merged.glob("data_*/*.tdat"):
            by_time.write_text(first_and_last(by_time.read_text()))
        _write_archive(merged, archive)


def merge(folders: Sequence[Path], merged: Path) -> None:
    """Join the folders of single problems, in the order of function, dimension and instance."""
    merged.mkdir(parents=True)
    records = "".join((folder / RECORD).read_text() for folder in folders)
    (merged / "records.jsonl").write_text(records)
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
    """Of each run two lines after its title: all that cocopp's reduce_size leaves of a .tdat."""
    runs = [run.splitlines(keepends=True) for run in re.split("^(?=%)", text, flags=re.M) if run]
    return "".join("".join([*run[:2], *run[2:][-1:]]) for run in runs)


def _joined(infos: Iterable[str]) -> str:
    """The .info file of a function: three lines a dimension, the last lists the instances."""
    instances: dict[str, str] = {}  # of the two lines before and the name of the data file
    for info in infos:
        head, _, last = info.rpartition("\n")
        data_file, _, instance = last.partition(", ")
        key = f"{head}\n{data_file}"
        instances[key] = f"{instances[key]}, {instance}" if key in instances else instance
    return "\n".join(f"{key}, {listed}" for key, listed in instances.items())


def _write_archive(folder: Path, archive: Path) -> None:
    """A .tgz of the same bytes for the same data, complete or not there."""
    part = archive.with_suffix(".part")
    with (
        part.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                tar.add(path, path.relative_to(folder.parent), filter=_anonymous)
    part.rename(archive)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


def solver_in(archive: Path) -> str:
    """The solver whose data an archive holds: the folder in it, whatever the file is called."""
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
    """The page of cocopp, which compares the solvers, each with its archive; its address."""
    require("coco", "cocopp", "six")
    page.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:  # cocopp writes beside what it reads
        for archive in archives.values():
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, filter="data")
        # By itself: it sets matplotlib up its own way, looks for its archive online, and talks.
        answer = subprocess.run(  # noqa: S603 - our own words
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
