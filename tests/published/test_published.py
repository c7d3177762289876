"""Evaluations to the target 1e-10 by the paper's protocol, beside the authors' package.

The figures are means over 3 to 10 seeds of crfmnes 1.0.0, run apart from this library: sphere,
k-tablet, ellipsoid and Rastrigin from (3, ..., 3) with sigma 2, Rosenbrock from 0 with sigma 0.5.
"""

import numpy as np
import pytest

import fmnes
from fmnes.problems import PROBLEMS

AUTHORS = {  # function, d, lambda: mean evaluations
    ("sphere", 80, 18): 8.23e3,
    ("sphere", 80, 36): 1.05e4,
    ("sphere", 80, 54): 1.36e4,
    ("sphere", 80, 90): 2.08e4,
    ("ktablet", 80, 18): 1.80e4,
    ("ktablet", 80, 36): 2.19e4,
    ("ktablet", 80, 54): 2.71e4,
    ("ktablet", 80, 90): 3.81e4,
    ("ellipsoid", 80, 18): 1.72e4,
    ("ellipsoid", 80, 36): 2.16e4,
    ("ellipsoid", 80, 54): 2.71e4,
    ("ellipsoid", 80, 90): 3.84e4,
    ("rosenbrock", 80, 18): 9.18e4,
    ("rosenbrock", 80, 36): 1.26e5,
    ("rosenbrock", 80, 54): 1.63e5,
    ("rosenbrock", 80, 90): 2.41e5,
    ("rastrigin", 80, 1920): 4.11e5,
    ("sphere", 200, 20): 1.95e4,
    ("sphere", 200, 60): 2.78e4,
    ("ktablet", 200, 20): 5.20e4,
    ("ktablet", 200, 60): 7.15e4,
    ("ellipsoid", 200, 20): 4.76e4,
    ("ellipsoid", 200, 60): 6.83e4,
    ("rosenbrock", 200, 20): 3.98e5,
    ("rosenbrock", 200, 60): 7.48e5,
}
QUICK = {key for key, mean in AUTHORS.items() if mean < 2e4}


def cases():
    for key in AUTHORS:
        marks = [] if key in QUICK else [pytest.mark.slow]
        yield pytest.param(*key, marks=marks, id="-".join(map(str, key)))


@pytest.mark.parametrize(("function", "dim", "lam"), list(cases()))
def test_the_paper_variant_needs_what_the_authors_package_needs(function, dim, lam):
    problem = PROBLEMS[function](dim)
    counts = []
    for seed in range(10):
        with np.errstate(invalid="ignore"):  # the published update may reach the log of a D < 0
            result = fmnes.minimize(
                problem,
                problem.x0,
                problem.sigma0,
                method=fmnes.CRFMNES(variant="paper"),
                popsize=lam,
                ftarget=1e-10,
                maxfevals=5 * dim * 10**4,
                vectorized=True,
                rng=seed,
            )
        if result.success:
            counts.append(result.nfev)
    # Rosenbrock's function has a local minimum, and one run in thirty breaks up (status "scale").
    assert len(counts) >= (8 if function == "rosenbrock" else 10)
    assert np.mean(counts) == pytest.approx(AUTHORS[function, dim, lam], rel=0.06)


@pytest.mark.parametrize(
    ("function", "dim", "slides"),
    [
        ("ellipsoid", 200, 7.7e4),
        pytest.param("sphere", 200, 2.6e4, marks=pytest.mark.slow),
        pytest.param("ktablet", 200, 7.4e4, marks=pytest.mark.slow),
    ],
)
def test_separable_cma_needs_what_the_paper_shows(function, dim, slides):
    """Read off the log plots of the authors' slides: two digits, so 10 %."""
    problem = PROBLEMS[function](dim)
    counts = [
        fmnes.minimize(
            problem,
            problem.x0,
            problem.sigma0,
            method="sep-cma",
            popsize=20,
            ftarget=1e-10,
            vectorized=True,
            rng=seed,
        ).nfev
        for seed in range(3)
    ]
    assert np.mean(counts) == pytest.approx(slides, rel=0.1)
