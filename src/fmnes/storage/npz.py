"""The file of a search: a JSON header and arrays in npz format, without pickle.

Loading a file runs no code from it. Only the classes that `encoding.py` lists are created, and
arrays are read with ``allow_pickle=False`` after their sizes and a checksum over all of them have
been verified. A file is written completely under another name and then renamed, so a crash while
saving leaves the old file as it was.
"""

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
import shutil
import tokenize
import zipfile
from collections.abc import Collection
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fmnes._files import replacing
from fmnes._version import __version__
from fmnes.storage.encoding import decode, encode
from fmnes.storage.validity import check_content

logger = logging.getLogger("fmnes")

FORMAT = 6
_READABLE = (3, 4, 5, FORMAT)
_HEADER, _CHECKSUM = "header", "checksum"
_VERSIONS = {"fmnes": __version__, "numpy": np.__version__}
# What to do with a file that another function reads.
_OF_MINIMIZE = "it is a checkpoint: minimize(..., checkpoint=path) resumes from it"
_OF_OPTIMIZER = "it is a file of Optimizer.save: Optimizer.load reads it"
_OF_SHARDS = "it has some of the variables: torch_distributed.Shards.load reads it"
_OF_RESULT = "it is a JSON file: Result.load reads a file of Result.save"


class DamagedError(ValueError):
    """The file is damaged, or it was not written by fmnes."""


def write(
    path: str | os.PathLike[str], content: dict[str, Any], previous: str | None = None
) -> None:
    """Write a dict of records, lists, dicts, numbers and arrays to ``path``.

    If writing fails, the old file stays as it was. If it succeeds, the old file is kept at
    ``previous``, if given.
    """
    arrays: dict[str, Any] = {}
    header = {"format": FORMAT, **_VERSIONS, "content": encode(content, arrays)}
    arrays[_HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    arrays[_CHECKSUM] = checksum(arrays)
    with replacing(path) as temporary:
        with open(temporary, "wb") as file:
            _write_arrays(file, arrays)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None:
            _keep(path, previous)
    sync_folder(path)


def _write_arrays(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """Write the arrays as `numpy.savez` does, which before NumPy 2.1 leaves the archive open.

    On a full disk such an archive prints a traceback when Python removes it.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def _keep(path: str | os.PathLike[str], previous: str) -> None:
    """Give the file at ``path`` the second name ``previous``; ``path`` exists at every moment."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(previous)
    try:
        os.link(path, previous)
    except FileNotFoundError:  # somebody removed the file
        return
    except OSError:  # a file system without hard links
        shutil.copyfile(path, previous)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Force the file names in the folder of ``path`` to the disk."""
    if os.name != "posix":
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # this file system cannot sync folders
            raise
    finally:
        os.close(folder)


# The errors that zip files, arrays and JSON raise if a bit is wrong.
_DAMAGE = (
    zipfile.BadZipFile,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
)


def read(
    path: str | os.PathLike[str], names: Collection[str], argument: str = "path"
) -> dict[str, Any]:
    """Return the dict that `write` wrote, with the keys ``names``.

    Raises DamagedError for a damaged file, and ValueError for a file of another format or with
    other keys. ``argument`` is the name of the user's argument, for error messages.
    """
    expected = f"{argument}: expected a file saved by fmnes, got {os.fspath(path)}"
    with open(path, "rb") as file:  # a file that cannot be opened is an OSError
        try:
            arrays = _arrays(file)
            header = json.loads(arrays[_HEADER].tobytes())
            format_, content = header["format"], header["content"]
            readable = format_ in _READABLE
            whole = not readable or np.array_equal(arrays.pop(_CHECKSUM), checksum(arrays))
        except _DAMAGE as error:
            raise DamagedError(f"{expected} ({_why_damaged(file, error)})") from error
    if not readable:
        raise ValueError(f"{expected} (its format is {format_}, not {FORMAT})")
    if not whole:
        raise DamagedError(f"{expected} (its checksum is wrong)")
    try:
        decoded: dict[str, Any] = decode(content, arrays)
        _upgrade(decoded, format_)
        check_content(decoded)
    except _DAMAGE as error:
        raise DamagedError(f"{expected} ({error})") from error
    if set(decoded) != set(names):
        raise ValueError(f"{expected} ({_reader_of(decoded)})")
    written = {name: header.get(name) for name in _VERSIONS}
    if written != _VERSIONS:
        logger.warning(
            "%s was written with %s, and this is %s: results may differ in the last digits",
            path,
            written,
            _VERSIONS,
        )
    return decoded


def _reader_of(decoded: dict[str, Any]) -> str:
    """Return which function reads a file."""
    if "variables" in decoded:
        return _OF_SHARDS
    return _OF_MINIMIZE if "current" in decoded else _OF_OPTIMIZER


def _upgrade(decoded: dict[str, Any], format_: int) -> None:
    """Add what files of an earlier format do not hold."""
    is_checkpoint = "current" in decoded
    search = decoded["current"] if is_checkpoint else decoded
    search.setdefault("constrained", None)  # there were no constraints
    search.setdefault("margin", None)  # and no integers
    search.setdefault("injected", None)  # and no points from elsewhere
    if is_checkpoint:
        decoded.setdefault("flight", None)  # the search was not asynchronous
        decoded.setdefault("parallel", None)  # and its runs followed each other
    if format_ < 5 and is_checkpoint:
        decoded["objective"] = None
    if format_ < 6:
        search["extra_x"] = None
        if is_checkpoint:
            # x0 was no part of the first generation, and the step size was sigma0.
            decoded |= {"evaluates_x0": False, "sigma_factor": 1.0}


def _why_damaged(file: IO[bytes], error: Exception) -> str:
    """Return why a file has no arrays, or which function reads it."""
    file.seek(0)
    if file.read(1) == b"{":
        return _OF_RESULT
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _arrays(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """Return all arrays of an npz file.

    We do not use np.load, because it allocates the size that the file claims without checking it.
    """
    size = os.fstat(file.fileno()).st_size
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > size:
            raise ValueError(f"its arrays claim more than the {size} bytes of the file")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("its arrays are compressed")
        for member in members:
            with archive.open(member) as stream:
                _check_size(stream, member.file_size)
            with archive.open(member) as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
            arrays[member.filename.removesuffix(".npy")] = array
    return arrays


def _check_size(stream: IO[bytes], size: int) -> None:
    """Raise an error if the header of an array claims another size than the array has."""
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"an array has the format {version}, not (1, 0)")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    claimed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or stream.tell() + claimed != size:
        raise ValueError(f"an array claims {claimed} bytes, and has {size - stream.tell()}")


def checksum(arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the SHA-256 of names, types, shapes and bytes of arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.descr} {arrays[name].shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(digest.digest(), np.uint8)
