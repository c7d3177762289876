"""The bridge: forces against statics, and the design against the closed form."""

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "truss.py"))


@pytest.fixture(scope="module")
def truss():
    return EXAMPLE["Truss"](panels=6)


def test_forces_are_those_of_the_method_of_sections(truss):
    """Cut through the third panel: moments about the joint above give its lower bar."""
    load, span, height = 1 / 6, 6, np.sqrt(3) / 2
    reaction = load * (span - 1) / 2
    moment = reaction * 2.5 - load * (1.5 + 0.5)  # about x = 2.5, loads at 1 and 2
    np.testing.assert_allclose(abs(truss.force[2]), moment / height)


def test_no_bar_of_the_optimum_can_be_made_lighter(truss):
    """Shifting material between any two bars at the same deflection costs weight."""
    area = truss.optimum()
    weight, excess = truss(np.log(area))
    assert excess == pytest.approx(0, abs=1e-9)
    rng = np.random.default_rng(1)
    for _ in range(200):
        other = np.maximum(truss.weakest, area * np.exp(0.1 * rng.normal(size=len(area))))
        other *= 1 + truss(np.log(other))[1]  # scaled until the deflection is the limit
        if (other >= truss.weakest).all():
            assert truss(np.log(other))[0] >= weight * (1 - 1e-9)


def test_the_design_is_the_optimum(truss):
    result = EXAMPLE["design"](truss, seed=1)
    assert result.success
    assert result.constr_violation == 0
    np.testing.assert_allclose(np.exp(result.x), truss.optimum(), rtol=1e-3)
