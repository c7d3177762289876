"""Rows on disk: what is written comes back, what a kill cut short goes, two runs do not mix."""

import math

import pytest

from fmnes.benchmarking.lines import appending
from fmnes.experiments.protocol import SAFE, Trial
from fmnes.experiments.results import HEADER, TrialResult, read, read_some

TRIALS = [Trial("evaluations", "sphere", 10, 10, *SAFE, number) for number in range(3)]


def row(trial, value=0.1 + 0.2):
    return TrialResult(trial, trial.seed, 100, True, value, 0.25, "fmnes 1, with a comma; and more")


def add(path, *rows):
    with appending(path, "results", HEADER) as append:
        append([row.to_line() for row in rows])


def test_rows_come_back_to_the_bit(tmp_path):
    path = tmp_path / "deep" / "results.csv"
    rows = [row(TRIALS[0]), row(TRIALS[1], math.inf), row(TRIALS[2], 5e-324)]
    add(path, *rows[:1])
    add(path, *rows[1:])
    assert list(read(path).values()) == rows


def test_a_file_that_is_not_there_has_no_rows(tmp_path):
    assert read(tmp_path / "none.csv") == {}


def test_a_line_cut_short_is_dropped_wherever_the_cut_was(tmp_path):
    path = tmp_path / "results.csv"
    add(path, row(TRIALS[0]), row(TRIALS[1]))
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(last, len(whole)):
        path.write_bytes(whole[:end])
        assert list(read(path)) == TRIALS[:1]
        add(path, row(TRIALS[1]))
        assert path.read_bytes() == whole


def test_a_header_cut_short_is_written_again(tmp_path):
    path = tmp_path / "results.csv"
    path.write_bytes(b"experiment,func")
    add(path, row(TRIALS[0]))
    assert list(read(path)) == TRIALS[:1]


def test_another_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"expected a file that begins with experiment,function"):
        read(path)


def test_nothing_is_taken_from_another_kind_of_file(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("first line\nsecond, without an end")
    with pytest.raises(ValueError, match=r"expected a file that begins with experiment,function"):
        add(path)
    assert path.read_text() == "first line\nsecond, without an end"


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "results.csv"
    add(path, row(TRIALS[0]))
    path.write_text(path.read_text().replace(",100,", ",many,"))
    with pytest.raises(ValueError, match=r"results.csv, line 2: expected a trial"):
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("evaluations,sphere", "foo,sphere", "experiment"),
        ("evaluations,sphere", "evaluations,foo", "function"),
        (",100,1,", ",100,2,", "success"),
    ],
)
def test_a_line_that_no_run_wrote_is_named(old, new, message, tmp_path):
    path = tmp_path / "results.csv"
    add(path, row(TRIALS[0]))
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=rf"line 2: expected a trial, got .*{message}"):
        read(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "results.csv"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"results.csv: expected a file that begins"):
        read(path)


def test_bytes_that_are_no_text_stay_as_they_are_when_lines_follow(tmp_path):
    path = tmp_path / "results.csv"
    path.write_bytes(HEADER.encode() + b"\xff\xfe\npart")
    add(path)
    assert path.read_bytes() == HEADER.encode() + b"\xff\xfe\n"


def test_where_there_has_to_be_a_row_its_absence_is_told(tmp_path):
    path = tmp_path / "results.csv"
    with pytest.raises(ValueError, match="expected at least one trial, got no such file"):
        read_some(path)
    add(path)
    with pytest.raises(ValueError, match="expected at least one trial, got none"):
        read_some(path)


def test_a_trial_that_is_there_twice_is_named(tmp_path):
    path = tmp_path / "results.csv"
    add(path, row(TRIALS[0]), row(TRIALS[0]))
    with pytest.raises(ValueError, match="line 3: expected each trial once"):
        read(path)


def test_a_second_run_on_the_same_file_is_refused(tmp_path):
    path = tmp_path / "results.csv"
    with (
        appending(path, "results", HEADER),
        pytest.raises(RuntimeError, match=r"results: .*results\.csv, used by this"),
    ):
        add(path)
    add(path)  # the first has ended
