"""The pictures of docs/reading-the-plots.md: runs that show what each panel tells.

python examples/pictures.py docs/pictures
"""

import sys
from pathlib import Path

import numpy as np

import fmnes
from fmnes.problems import ellipsoid, rastrigin, rosenbrock

METHOD = "cr-fm-nes"  # it has a v to show, takes sigma0 as given, and does not follow noise


def steady(folder: Path) -> None:
    """A run as it should be: the valley of Rosenbrock's function."""
    problem = rosenbrock(40)
    result = fmnes.minimize(
        problem, problem.x0, problem.sigma0, method=METHOD, ftarget=1e-8, vectorized=True, rng=1
    )
    fmnes.plot(result).savefig(folder / "steady.png", dpi=150)
    fmnes.plot(result, width=3.3).savefig(folder / "column.png", dpi=150)


def too_small(folder: Path) -> None:
    """sigma0 a million times too small: it grows first."""
    problem = ellipsoid(40)
    result = fmnes.minimize(
        problem,
        problem.x0,
        1e-6 * problem.sigma0,
        method=METHOD,
        ftarget=1e-8,
        vectorized=True,
        rng=1,
    )
    fmnes.plot(result).savefig(folder / "sigma0-too-small.png", dpi=150)


def noisy(folder: Path) -> None:
    """Noise of 1: the median stays there, and the best value is luck."""
    rng = np.random.default_rng(1)

    def noisy_sphere(x: np.ndarray) -> np.ndarray:
        return (x**2).sum(axis=1) + rng.normal(size=len(x))

    options = {"maxfevals": 20_000, "vectorized": True, "rng": 1}
    result = fmnes.minimize(noisy_sphere, [3.0] * 20, 1.0, method=METHOD, **options)
    fmnes.plot(result).savefig(folder / "noise.png", dpi=150)


def restarted(folder: Path) -> None:
    """Many valleys: each run ends in one, the next has twice the population."""
    problem = rastrigin(20)
    result = fmnes.minimize(
        problem,
        problem.x0,
        problem.sigma0,
        method=METHOD,
        popsize=16,
        ftarget=1e-8,
        restarts=9,
        vectorized=True,
        rng=1,
    )
    fmnes.plot(result).savefig(folder / "restarts.png", dpi=150)


def side_by_side(folder: Path) -> None:
    """Three methods on the ellipsoid, turned and as it is."""
    runs = {}
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(20, 20)))[0]
    problem = ellipsoid(20, ratio=30.0)
    for method in ("cr-fm-nes", "sep-cma", "cma-es"):
        runs[method] = [
            fmnes.minimize(
                lambda x: problem(x @ turned),
                problem.x0,
                problem.sigma0,
                method=method,
                ftarget=1e-8,
                maxfevals=20_000,
                vectorized=True,
                rng=seed,
            )
            for seed in range(11)
        ]
    fmnes.plot_runs(runs, fopt=0.0).savefig(folder / "runs.png", dpi=150)
    targets = np.logspace(2, -8, 51)
    fmnes.plot_ecdf(runs, targets, dim=20).savefig(folder / "ecdf.png", dpi=150)


def film(folder: Path) -> None:
    """Two variables, and a corner that is infeasible."""
    problem = rosenbrock(2)

    def fun(x: np.ndarray) -> float:
        return float(problem(x)) if x[0] + x[1] > -0.5 else np.inf

    animation = fmnes.animate(fun, [-1.0, 1.0], 0.3, popsize=12, maxiter=45, rng=1)
    animation.save(folder / "search.gif", writer="pillow", dpi=100)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (steady, too_small, noisy, restarted, side_by_side, film):
        draw(folder)


if __name__ == "__main__":
    main()
