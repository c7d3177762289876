"""Infeasible regions and noise, of which COCO's suite has none: for docs/large-scale.md.

python benchmarks/which_method.py    # prints both tables, a minute or two
"""

import numpy as np

import fmnes

METHODS = ("cr-fm-nes", "fm-nes", "cma-es", "vd-cma", "sep-cma")
SEEDS = range(3)
NOISE_DIM = 40
POPSIZES = (16, 64, 256)


def infeasible(method: str, dim: int, seed: int) -> float:
    """Evaluations per variable to the corner of the half-spaces; infinite if it ends elsewhere."""
    problem = fmnes.problems.halfspaces(dim)
    result = fmnes.minimize(
        problem.function,
        problem.x0,
        problem.sigma0,
        method=method,
        ftarget=1e-8,
        maxfevals=5000 * dim,
        vectorized=True,
        rng=seed,
    )
    return result.nfev / dim if result.success else np.inf


def noisy(method: str, popsize: int, seed: int) -> float:
    """The sphere with normal noise: its value, without noise, at the mean after 2000 d."""
    d = NOISE_DIM
    noise = np.random.default_rng([seed, popsize])
    opt = fmnes.Optimizer(np.full(d, 3.0), 2.0, method=method, popsize=popsize, rng=seed)
    while opt.result.nfev < 2000 * d and not opt.stop():
        opt.tell(np.sum(opt.ask() ** 2, axis=1) + noise.standard_normal(popsize))
    return float(np.sum(opt.result.mean**2))


def main() -> None:
    for dim in (20, 80):
        for method in METHODS:
            counts = [infeasible(method, dim, seed) for seed in SEEDS]
            print(f"half-spaces, d = {dim}, {method}:", *(f"{count:.0f}" for count in counts))
    for popsize in POPSIZES:
        for method in METHODS:
            errors = [noisy(method, popsize, seed) for seed in SEEDS]
            print(f"noise, popsize {popsize}, {method}: median {np.median(errors):.2g}")


if __name__ == "__main__":
    main()
