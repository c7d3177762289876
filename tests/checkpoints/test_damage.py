"""Damaged files, crafted files and full disks never change the result and never lose the search."""

import os
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc
import zlib

import numpy as np
import pytest

import fmnes
from checkpoints.common import Clock, Counted, digest, names, search, sphere
from fmnes.storage.npz import FORMAT

OPTIONS = {"maxiter": 30, "workers": None, "method": "cr-fm-nes"}  # each x is evaluated once
FILES = ["run.npz", "run.npz.previous", "run.npz.journal", "run.npz.journal.previous"]


@pytest.fixture(scope="module")
def expected():
    return digest(search(sphere, **OPTIONS))


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The files of a search that ended in its 21st generation, which has 3 of 8 values.

    The first value is that of x0.

    The older checkpoint is of generation 5, the newer of 15.
    """
    folder = tmp_path_factory.mktemp("ended")
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(monkeypatch)

        def callback(intermediate_result):  # time for a checkpoint after the next generation
            clock.now += 1000.0 * (intermediate_result.nit in (4, 14))

        with pytest.raises(RuntimeError, match="the end"):
            search(Counted(end_at=165), folder / "run.npz", callback=callback, **OPTIONS)
    assert names(folder) == sorted(FILES)
    return folder


@pytest.fixture
def path(ended, tmp_path):
    """A copy of them."""
    for name in FILES:
        shutil.copy(ended / name, tmp_path)
    return tmp_path / "run.npz"


def resumed(path):
    """The digest of the rest of the search, and how many evaluations it took."""
    rest = Counted()
    return digest(search(rest, path, **OPTIONS)), len(rest.calls)


def test_undamaged(path, expected, caplog):
    assert resumed(path) == (expected, 1 + 30 * 8 - 164)
    assert caplog.records == []


# === Truncated, or with a bit flipped ===


@pytest.mark.parametrize("tenths", range(10))
@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file(path, name, tenths, expected, caplog):
    damaged = path.parent / name
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) * tenths // 10])
    answer, evaluations = resumed(path)
    assert answer == expected
    text = caplog.text
    if name == "run.npz":  # the older one and both journals have it all
        assert evaluations == 1 + 30 * 8 - 164
        assert f"got {path} (" in text
        assert f"{path}.previous" in text
    elif name == "run.npz.journal":
        known, torn = read_by_hand(content[: len(content) * tenths // 10])
        assert evaluations == 30 * 8 - 15 * 8 - known
        assert ("run.npz.journal" in text) == torn
    else:  # the older ones are not needed
        assert evaluations == 1 + 30 * 8 - 164
        assert text == ""


def read_by_hand(journal):
    """Values in a journal, by the lengths of its records; and whether it ends within one."""
    position, count = 16, 0
    while position + 4 <= len(journal):
        after = position + 8 + struct.unpack_from("<I", journal, position)[0]
        if after > len(journal):
            break
        count += journal[position + 4] == 2
        position = after
    return count, position != len(journal)


def test_two_hundred_flipped_bits(path, ended, expected, caplog):
    """In any of the files: noticed, or of no consequence; never another answer."""
    rng = np.random.default_rng(0)
    outcomes = {name: set() for name in FILES}
    for i in range(200):
        name = FILES[i % 4]
        for other in FILES:
            shutil.copy(ended / other, path.parent)
        damaged = bytearray((ended / name).read_bytes())
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        (path.parent / name).write_bytes(damaged)
        caplog.clear()
        answer, evaluations = resumed(path)
        assert answer == expected
        assert evaluations == 1 + 30 * 8 - 164 or name == "run.npz.journal"
        outcomes[name].add(bool(caplog.records))
    assert outcomes["run.npz"] >= {True}
    assert outcomes["run.npz.journal"] == {True}
    assert outcomes["run.npz.previous"] == outcomes["run.npz.journal.previous"] == {False}


@pytest.mark.parametrize("name", ["run.npz.previous", "run.npz.journal.previous"])
def test_the_newest_and_an_older_file_damaged(path, name, expected, caplog):
    for damaged in (path, path.parent / name):
        content = damaged.read_bytes()
        damaged.write_bytes(content[: len(content) // 2])
    if name == "run.npz.previous":
        before = {name: (path.parent / name).read_bytes() for name in FILES}
        rest = Counted()
        with pytest.raises(ValueError, match=r"^checkpoint: .* got"):
            search(rest, path, **OPTIONS)
        assert rest.calls == []
        assert {name: (path.parent / name).read_bytes() for name in FILES} == before
    else:
        answer, evaluations = resumed(path)
        assert answer == expected
        assert 30 * 8 - 15 * 8 <= evaluations <= 30 * 8 - 5 * 8
        assert "run.npz.journal" in caplog.text


def test_damage_upon_damage(path, expected):
    """After the older checkpoint was used, it is still whole and still has its values."""
    for _ in range(3):
        content = path.read_bytes()
        path.write_bytes(content[:-100])
        rest = Counted(end_at=9)
        with pytest.raises(RuntimeError, match="the end"):
            search(rest, path, **OPTIONS)
    assert resumed(path) == (expected, 1 + 30 * 8 - 164 - 3 * 8)


def test_a_checkpoint_of_a_later_format_is_not_passed_over(path):
    """It is whole: the older one must not take its place behind anybody's back."""
    header = f'{{"format": {FORMAT + 1}, "content": {{}}}}'
    arrays = {"header": np.frombuffer(header.encode(), np.uint8)}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=rf"^checkpoint: .*format is {FORMAT + 1}"):
        search(sphere, path, **OPTIONS)


def test_a_journal_of_another_search_is_not_read(path, tmp_path_factory, expected):
    other = tmp_path_factory.mktemp("other") / "run.npz"
    with pytest.raises(RuntimeError, match="the end"):
        search(Counted(lambda x: -sphere(x), end_at=100), other, **OPTIONS)
    shutil.copy(f"{other}.journal", f"{path}.journal")
    assert resumed(path) == (expected, 30 * 8 - 15 * 8)


# === Missing ===


@pytest.mark.parametrize("resume", ["auto", "must"])
def test_a_checkpoint_that_was_deleted(path, resume, expected):
    """The other files are still there: nothing is started or changed."""
    path.unlink()
    before = {name: (path.parent / name).read_bytes() for name in names(path.parent)}
    with pytest.raises(FileNotFoundError, match=r"^checkpoint: .*run.npz.previous") as error:
        search(sphere, path, resume=resume, **OPTIONS)
    assert "run.npz.journal" in str(error.value)
    assert {name: (path.parent / name).read_bytes() for name in names(path.parent)} == before
    shutil.copy(f"{path}.previous", path)  # what the message advises
    assert resumed(path) == (expected, 1 + 30 * 8 - 164)


def test_a_search_that_is_to_start_again_needs_no_checkpoint(path, expected):
    path.unlink()
    assert digest(search(sphere, path, resume="never", **OPTIONS)) == expected


# === Crafted ===


class Trap:
    """Unpickling one would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_no_code_of_a_file_runs(path, tmp_path_factory):
    sprung = tmp_path_factory.mktemp("trap") / "sprung"
    for name in FILES:
        (path.parent / name).write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(ValueError, match=r"^checkpoint: "):
        search(sphere, path, **OPTIONS)
    with path.open("wb") as file:
        np.savez(file, header=np.array([Trap(sprung)], dtype=object))
    with pytest.raises(ValueError, match=r"^checkpoint: "):
        search(sphere, path, **OPTIONS)
    assert not sprung.exists()


@pytest.mark.parametrize(
    "record",
    [
        struct.pack("<BIQIdd", 1, 0, 15, 2**32 - 1, 1.0, 1.0),  # 4e9 candidates
        struct.pack("<BI", 2, 2**32 - 1) + bytes(8),  # a candidate that there is not
        struct.pack("<BI", 2, 0) + bytes(8 * 9),  # nine values for eight candidates
        struct.pack("<BI", 2, 0) + bytes(7),
        struct.pack("<BI", 3, 2**32 - 1) + b"text",
        struct.pack("<BI", 3, 0) + b"\xff",  # no text
        b"\x02",
        b"\x09",
    ],
)
def test_a_journal_may_claim_what_it_likes(path, record, expected):
    """The right checksum does not make sense of it: it counts as damage, and takes no memory."""
    content = (path.parent / "run.npz.journal").read_bytes()
    (crc,) = struct.unpack("<I", content[-4:])
    data = struct.pack("<I", len(record)) + record
    crafted = content + data + struct.pack("<I", zlib.crc32(data, crc))
    (path.parent / "run.npz.journal").write_bytes(crafted)
    tracemalloc.start()
    try:
        assert resumed(path) == (expected, 1 + 30 * 8 - 164)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_a_torn_length_is_the_end(path, expected):
    with (path.parent / "run.npz.journal").open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x02")
    assert resumed(path) == (expected, 1 + 30 * 8 - 164)


# === Disks that fail ===

LIMITED = """
    import logging, resource, sys
    import fmnes

    logging.basicConfig(format="%(message)s")
    path, limit, lifted, on_error = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    calls = [0]

    def fun(x):
        calls[0] += 1
        if calls[0] == 100:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1))
        if calls[0] == lifted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
        return float((x**2).sum())

    fmnes.minimize(fun, [3.0] * 5, 1.0, rng=1, maxiter=30, method="cr-fm-nes",
                   checkpoint=fmnes.Checkpoint(path, every=0, on_error=on_error))
"""


def limited(path, limit, lifted=0, on_error="warn"):
    """A search whose files may not grow beyond the limit from its 100th evaluation on."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(LIMITED),
            path,
            *map(str, (limit, lifted, on_error)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize("limit", [0, 500, 3000])
def test_a_full_disk(tmp_path, limit, expected):
    """A warning, the old checkpoint stays, the search goes on, and can be resumed."""
    path = tmp_path / "run.npz"
    done = limited(path, limit)
    assert done.returncode == 0
    assert done.stderr.count("was not written: File too large") == 1
    answer, evaluations = resumed(path)
    assert answer == expected
    assert 1 + 30 * 8 - 99 - limit // 20 - 8 <= evaluations <= 1 + 30 * 8 - 99 + 8
    assert not [name for name in names(tmp_path) if name.endswith(".tmp")]


def test_a_disk_that_is_full_for_a_while(tmp_path, expected):
    path = tmp_path / "run.npz"
    done = limited(path, 0, lifted=180)
    assert done.returncode == 0
    assert done.stderr.count("was not written: File too large") == 1
    assert resumed(path) == (expected, 0)


def test_a_full_disk_is_an_error_if_asked_for(tmp_path, expected):
    path = tmp_path / "run.npz"
    done = limited(path, 0, on_error="raise")
    assert done.returncode == 1
    assert "OSError: [Errno 27] File too large" in done.stderr
    answer, evaluations = resumed(path)
    assert answer == expected
    assert evaluations == 1 + 30 * 8 - 99


@pytest.fixture
def read_only_folder():
    """A folder that cannot be written to, also where the tests run as root."""
    folder = tempfile.mkdtemp()  # pytest's own are for their owner's eyes only
    user = os.geteuid()
    try:
        yield folder
    finally:
        os.seteuid(user)
        shutil.rmtree(folder)


def test_a_read_only_folder(read_only_folder, ended, expected, caplog):
    path = os.path.join(read_only_folder, "run.npz")
    for name in FILES:
        shutil.copy(ended / name, read_only_folder)
    before = sorted(os.listdir(read_only_folder))
    os.chmod(read_only_folder, 0o555)
    if os.geteuid() == 0:
        os.seteuid(65534)
    assert resumed(path) == (expected, 1 + 30 * 8 - 164)
    assert sorted(os.listdir(read_only_folder)) == before
    assert caplog.text.count("was not written: Permission denied") == 1
    with pytest.raises(PermissionError):
        search(sphere, fmnes.Checkpoint(path, on_error="raise"), **OPTIONS)
    empty = os.path.join(read_only_folder, "other.npz")
    assert digest(search(sphere, empty, **OPTIONS)) == expected


def test_a_folder_that_is_taken_away(tmp_path, expected, caplog, monkeypatch):
    """And given back: then the search is saved again."""
    Clock(monkeypatch)  # a checkpoint after every generation
    folder, elsewhere = tmp_path / "here", tmp_path / "there"
    folder.mkdir()
    calls = [0]

    def fun(x):
        calls[0] += 1
        if calls[0] == 50:
            folder.rename(elsewhere)
        if calls[0] == 150:
            elsewhere.rename(folder)
        return sphere(x)

    kept = fmnes.Checkpoint(folder / "run.npz", every=0)
    assert digest(search(fun, kept, **OPTIONS)) == expected
    assert "was not written: No such file or directory" in caplog.text
    assert resumed(folder / "run.npz") == (expected, 0)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "search.npz"
    opt = fmnes.Optimizer([3.0] * 5, 1.0, rng=1)
    opt.save(path)
    before = path.read_bytes()

    def full_disk(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        opt.save(path)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["search.npz"]


def test_without_hard_links_the_older_checkpoint_is_a_copy(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError("not here")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "run.npz"
    search(sphere, path, maxiter=5)
    os.replace(f"{path}.previous", tmp_path / "older.npz")
    counted = Counted()
    search(counted, tmp_path / "older.npz", maxiter=5, resume="must")
    assert len(counted.calls) == 2 + 5 * 8  # x0 twice, with the method "auto"


def test_what_a_kill_left_half_written_is_removed(tmp_path):
    path = tmp_path / "run.npz"
    of_others = ["other.tmp", "run.npz.b.12-34.tmp", "run.npz.b.journal.tmp"]  # of "run.npz.b"
    for name in ("run.npz.12-34.tmp", "run.npz.journal.tmp", *of_others):
        (tmp_path / name).write_bytes(b"half")
    search(sphere, path, maxiter=5)
    assert names(tmp_path) == sorted([*of_others, *FILES])
