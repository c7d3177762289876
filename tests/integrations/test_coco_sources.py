"""`fmnes coco report`: what it takes for data, and what it says of anything else."""

import gzip
import re
import tarfile

import numpy as np
import pytest

from fmnes.cli import main
from fmnes.integrations import coco

pytest.importorskip("cocoex", reason="needs the extra coco: coco-experiment")


def test_sources_that_are_none(tmp_path, capsys):
    for source in (tmp_path / "nothing", tmp_path):
        assert main(["coco", "report", str(source)]) == 2
        assert re.match(rf"fmnes coco: sources: .* got {source}\n", capsys.readouterr().err)


@pytest.fixture
def archive(tmp_path):
    """An archive of a few numbers."""
    folder = tmp_path / "some-solver"
    folder.mkdir()
    (folder / "data").write_bytes(np.random.default_rng(1).bytes(10_000))
    with tarfile.open(tmp_path / "some-solver.tgz", "w:gz") as tar:
        tar.add(folder, "some-solver")
    return tmp_path / "some-solver.tgz"


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"no archive",
        lambda whole: b"",
        lambda whole: gzip.compress(b"no archive"),
        lambda whole: whole[:5000],
        lambda whole: whole[:20] + bytes(20) + whole[40:],
        lambda whole: whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:],
    ],
    ids=["other bytes", "empty", "other content", "cut off", "no deflate stream", "one bit"],
)
def test_a_damaged_archive_is_named(archive, damage, capsys):
    archive.write_bytes(damage(archive.read_bytes()))
    assert main(["coco", "report", str(archive), "--out", str(archive.parent / "page")]) == 2
    message = f"fmnes coco: sources: expected a whole .tgz, got {archive}: "
    assert re.fullmatch(re.escape(message) + ".+\n", capsys.readouterr().err)


def test_the_folder_in_an_archive_is_the_solver(archive, tmp_path):
    copy = tmp_path / "copy.tgz"
    copy.write_bytes(archive.read_bytes())
    with pytest.raises(ValueError, match=r"got some-solver in .*some-solver\.tgz and .*copy\.tgz"):
        coco.report([archive, copy], tmp_path / "page")

    for names, found in (("data",), "none"), (("b/data", "./a/data", "data"), "a, b"):
        with tarfile.open(copy, "w:gz") as tar:
            for name in names:
                tar.add(tmp_path / "some-solver/data", name)
        with pytest.raises(ValueError, match=rf"sources: expected one folder in .*, got {found}$"):
            coco.report([copy], tmp_path / "page")


def test_archives_alone_need_a_folder_for_the_page(archive, capsys):
    assert main(["coco", "report", str(archive)]) == 2
    assert re.match(r"fmnes coco: page: .*--out.*, got none", capsys.readouterr().err)


def test_a_solver_given_twice(tmp_path):
    one = {"suite": "bbob", "dims": [2], "functions": [1], "instances": [1], "budget": 20}
    for name in "ab":
        coco.run(["cr-fm-nes"], tmp_path / name, **one)
    with pytest.raises(ValueError, match=r"sources: expected each solver once, got .*a.* and .*b"):
        coco.report([tmp_path / "a", tmp_path / "b"])
