"""Bayesian optimization in a trust region, written after TuRBO, with the models of BoTorch.

D. Eriksson, M. Pearce, J. Gardner, R. Turner, M. Poloczek: "Scalable global optimization via local
Bayesian optimization", NeurIPS 2019. One trust region; the next points are Thompson samples on
candidates that perturb some of the coordinates of the best point.
"""

import warnings
from typing import Any

import numpy as np

from leaderboard.trials import Start, Vector

LENGTH, LONGEST, SHORTEST = 0.8, 1.6, 2.0**-7  # of the side of the trust region, in [0, 1]
SUCCESSES = 3  # in a row, before the region grows
POINTS = 500  # the model is fitted to this many points at most: the latest ones


def turbo(start: Start) -> None:
    """Search until the trust region has collapsed."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(start.seed)
    rng = np.random.default_rng(start.seed)
    low, high = start.problem.low, start.problem.high
    dim = start.x0.size
    batch = max(4, dim // 5)
    failures_allowed = int(np.ceil(max(4.0, dim) / batch))
    X = rng.random((2 * dim, dim))
    if start.number == 0:
        X[0] = (np.clip(start.x0, low, high) - low) / (high - low)
    F = start.fun.many(low + X * (high - low))
    length, successes, failures = LENGTH, 0, 0
    while length > SHORTEST:
        x = _thompson(X[-POINTS:], F[-POINTS:], X[np.argmin(F)], length, batch, rng)
        f = start.fun.many(low + x * (high - low))
        better = f.min() < F.min() - 1e-3 * abs(F.min())
        successes, failures = (successes + 1, 0) if better else (0, failures + 1)
        if successes == SUCCESSES:
            length, successes = min(2 * length, LONGEST), 0
        elif failures == failures_allowed:
            length, failures = length / 2, 0
        X, F = np.concatenate([X, x]), np.concatenate([F, f])


def _thompson(
    X: Vector, F: Vector, centre: Vector, length: float, batch: int, rng: np.random.Generator
) -> Vector:
    """Return the minima of samples of the posterior on random candidates of the region."""
    import torch

    model = _fitted(X, F)
    scales = model.covar_module.lengthscale.detach().numpy().ravel()
    scales = scales / np.exp(np.mean(np.log(scales)))
    least = np.clip(centre - scales * length / 2, 0, 1)
    most = np.clip(centre + scales * length / 2, 0, 1)
    count = min(100 * centre.size, 2000)
    candidates = least + rng.random((count, centre.size)) * (most - least)
    changed = rng.random(candidates.shape) < min(1.0, 20 / centre.size)
    changed[np.arange(count), rng.integers(centre.size, size=count)] = True
    candidates = np.where(changed, candidates, centre)
    with torch.no_grad():
        posterior = model.posterior(torch.tensor(candidates))
        samples = posterior.rsample(torch.Size([batch])).numpy()[..., 0]
    return np.asarray(candidates[samples.argmax(axis=1)])  # the model is of -f


def _fitted(X: Vector, F: Vector) -> Any:
    """Return a Gaussian process of the standardised values, with a scale for each variable."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import Interval
    from gpytorch.kernels import MaternKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.mlls import ExactMarginalLogLikelihood

    y = -(F - F.mean()) / (F.std() + 1e-12)
    kernel = MaternKernel(2.5, ard_num_dims=X.shape[1], lengthscale_constraint=Interval(0.005, 4.0))
    likelihood = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
    model = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(y)[:, None],
        covar_module=kernel,
        likelihood=likelihood,
        outcome_transform=None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"options": {"maxiter": 50}}
        fit_gpytorch_mll(ExactMarginalLogLikelihood(likelihood, model), optimizer_kwargs=options)
    return model
