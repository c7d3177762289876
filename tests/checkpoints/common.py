"""What the tests of checkpoints share: objectives that count, a clock, a hash of a Result."""

import hashlib
import struct
import time
import zlib

import numpy as np

import fmnes


def sphere(x):
    return float((x**2).sum())


def stairs(x):
    """Ends runs early, so that there are restarts; of a point, or of points in rows."""
    return 1 + (np.floor(3 * x) ** 2).sum(axis=-1) + 0.01 * (x**2).sum(axis=-1)


class Counted:
    """An objective that notes where it was called, and ends the search at some call."""

    def __init__(self, fun=sphere, end_at=None, end=RuntimeError):
        self.fun, self.end_at, self.end = fun, end_at, end
        self.calls = []

    def __call__(self, x):
        if len(self.calls) + 1 == self.end_at:
            raise self.end("the end")
        self.calls.append(x.tobytes())
        return self.fun(x)


class Clock:
    """Time that passes only when a test says so: saving and syncing take no time at all."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def rewritten(journal, change):
    """The bytes of a journal with every record changed by a function, and the right checksums."""
    content, crc, position = journal[:16], 0, 16
    while position < len(journal):
        (length,) = struct.unpack_from("<I", journal, position)
        record = change(journal[position + 4 : position + 4 + length])
        data = struct.pack("<I", len(record)) + record
        crc = zlib.crc32(data, crc)
        content += data + struct.pack("<I", crc)
        position += 8 + length
    return content


def digest(result):
    """All that a Result holds, but for the seconds in its history."""
    content = hashlib.sha256()
    for array in (result.x, result.mean, *(a for a in result.shape if a is not None)):
        content.update(np.ascontiguousarray(array))
    for name in result.history.to_array().dtype.names:
        if not name.startswith("seconds"):
            content.update(np.ascontiguousarray(result.history[name]))
    scalars = (result.fun, result.nfev, result.nit, result.success, str(result.status))
    more = (result.sigma, result.nfailed, result.first_error, repr(result.restarts))
    content.update(repr((*scalars, *more)).encode())
    return content.hexdigest()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def search(fun, path=None, *, x0=(3.0,) * 5, sigma0=1.0, rng=1, **options):
    """A small search."""
    return fmnes.minimize(fun, list(x0), sigma0, rng=rng, checkpoint=path, **options)
