"""What the page says was run, of rows of which that is known."""

from fmnes.experiments import coverage, protocol
from fmnes.experiments.protocol import EXPERIMENTS, trials_of


def said(trials):
    """By what it is about."""
    sentences = coverage.sentences(dict.fromkeys(trials))
    return {about: what for about, _, what in (one.partition(": ") for one in sentences)}


def test_everything():
    found = said(trials_of(EXPERIMENTS, protocol.full))
    assert found["d = 10 to 100"] == "time complete."
    assert found["d = 600"] == "high-dimensional complete."
    assert "Beside the protocol" not in found


def test_nothing():
    assert set(said([])) == {"d = 10 to 100", "d = 80", "d = 200", "d = 600", "d = 1000"}
    assert all(what.endswith(" not run.") for what in said([]).values())


def test_the_quick_version():
    """Times by dimension; and of the ablation the method alone, without any part left out."""
    found = said(trials_of(EXPERIMENTS, protocol.quick))
    assert found["d = 10 to 100"] == (
        "time in part (18 of 900 trials: sphere 2 of 30 at d = 10, 50, 100, none at d = 20, 30, "
        "40, 60, 70, 80, 90)."
    )
    assert (
        "older-h in part (10 of 100 trials: sphere, ktablet, ellipsoid, rosenbrock 0-2 of 10 at "
        "λ = 18; rastrigin 0-2 of 10 at λ = 1600; none of “CR-FM-NES with the older H”)"
    ) in found["d = 80"]


def test_what_a_user_put_beside():
    trials = trials_of(["fm-nes"], protocol.quick)[:4]
    own = protocol.beside(trials, ("mine:Own", "yours"))
    assert said([*trials, *own])["Beside the protocol"] == f"mine:Own {len(own)} trials."
