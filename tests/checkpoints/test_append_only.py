"""A log takes all of what is appended to it or nothing, and continues after its last record."""

import errno
import os

import pytest

import fmnes
from fmnes.storage.append_only import AppendOnlyFile
from fmnes.storage.journal import Journal, Opening, Position, read, value_record

SEARCH = b"0123456789abcdef"


@pytest.fixture(params=[KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def failure(request, monkeypatch, tmp_path):  # tmp_path: pytest makes it before
    """The second write of a file fails, after a part of the data."""
    write, calls = os.write, []

    def write_a_part(file, data):
        calls.append(data)
        if len(calls) == 3:
            raise request.param
        return write(file, data[:3] if len(calls) == 2 else data)

    monkeypatch.setattr(os, "write", write_a_part)
    return type(request.param)


def test_what_cannot_be_written_whole_is_not_there_at_all(failure, tmp_path):
    path = tmp_path / "log"
    file = AppendOnlyFile(path, b"head\n")
    with pytest.raises(failure):
        file.append(b"a record\n")
    assert path.read_bytes() == b"head\n"
    file.append(b"another\n")
    file.close()
    assert path.read_bytes() == b"head\nanother\n"
    assert file.size == len(b"head\nanother\n")


def test_a_journal_can_be_read_after_a_record_that_was_not_written(failure, tmp_path):
    path = str(tmp_path / "journal")
    journal = Journal(path, SEARCH, Position(0, 0))
    with pytest.raises(failure):
        journal.enter(Opening(0, 0, 4, 1.0, 2.0).to_bytes(), value_record(0, 5.0))
    journal.enter(Opening(0, 0, 4, 1.0, 2.0).to_bytes(), value_record(1, 6.0))
    journal.close()
    segment = read(path, SEARCH)
    assert segment.whole
    assert [entry.known for entry in segment.entries] == [{1: 6.0}]


def test_a_log_continues_after_the_bytes_that_stay(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"head\none\ntw")
    file = AppendOnlyFile(path, b"head\n", end=len(b"head\none\n"))
    file.append(b"three\n")
    file.close()
    assert path.read_bytes() == b"head\none\nthree\n"


def is_open(path):
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return any(os.path.exists(link) and os.path.samefile(link, path) for link in links)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a list of open files")
def test_no_open_file_is_renamed_or_replaced(monkeypatch, caplog, tmp_path):
    """Windows refuses both."""
    replace = os.replace

    def replace_closed(source, target):
        for path in (source, target):
            if os.path.exists(path) and is_open(path):
                raise PermissionError(errno.EACCES, "used by another process", path)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_closed)
    path, calls = tmp_path / "run.npz", []

    def fun(x):
        calls.append(x)
        if len(calls) == 60:
            raise RuntimeError("the end")
        return float((x**2).sum())

    keep = fmnes.Checkpoint(path, every=0, on_error="raise")
    with pytest.raises(RuntimeError, match="the end"):
        fmnes.minimize(fun, [3.0] * 4, 1.0, rng=1, checkpoint=keep, maxiter=20)
    fmnes.minimize(fun, [3.0] * 4, 1.0, rng=1, checkpoint=keep, maxiter=20)
    assert len(calls) == 2 + 20 * 8 + 1  # x0 twice; only the one that failed was repeated
    assert caplog.records == []
