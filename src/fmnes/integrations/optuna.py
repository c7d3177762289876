"""FmnesSampler: a sampler for Optuna that uses the methods of fmnes.

The sampler stores only a small claim in each trial (see `_optuna_claims`). Every process that
samples for a study computes the state of the search from the claims, and gets exactly the same
state. So opening a study resumes it, and processes can share a study without any other connection.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fmnes import _checks as checks
from fmnes.arguments.method import read_method_of_fixed_size

try:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError("FmnesSampler needs Optuna: pip install 'fmnes[optuna]'") from error

from fmnes.integrations._optuna_claims import KEY, TrialClaims, claim_of, store_constraints
from fmnes.integrations._optuna_replay import ReplayedSearch
from fmnes.integrations._optuna_space import SearchedSpace, is_searched

logger = logging.getLogger("fmnes")


class FmnesSampler(BaseSampler):
    """A sampler for Optuna: method "auto", or another one of fmnes.

    The sampler searches floats, integers, logarithmic ranges, steps and categories together. The
    ``independent_sampler`` samples parameters that some completed trial did not have. Studies have
    one objective, minimized or maximized.

    Parameters
    ----------
    method : str or settings
        "auto" (the default), another name of `fmnes.METHODS`, or settings such as
        ``fmnes.CRFMNES(variant="paper")``.
    x0 : dict, optional
        Starting values by parameter name, as in ``study.best_params``. Parameters that are not
        listed start in the middle of their range. Names that are not searched are ignored.
    sigma0 : float
        Initial standard deviation, as a fraction of each range.
    popsize : int, optional
        Trials per generation; by default the method's own. With n workers, choose a multiple of n:
        otherwise some workers evaluate spare candidates at the end of each generation.
    seed : int, optional
        Random seed. If the study already holds a search with these settings, that search continues
        with its own seed.
    n_startup_trials : int
        Completed trials before the search starts. Until then ``independent_sampler`` samples, and
        in any case until one trial has shown which parameters there are.
    independent_sampler : BaseSampler, optional
        Samples the parameters that are not searched. By default a RandomSampler.
    warn_independent_sampling : bool
        Log which parameters are not searched, once each.
    search_space : dict of str to BaseDistribution, optional
        The parameters, if you know them beforehand. With ``n_startup_trials=0``, the first trial is
        then the first candidate.
    constraints_func : callable, optional
        ``constraints_func(trial)`` returns numbers that have to be <= 0, as in Optuna's own
        samplers. It is called after each completed or pruned trial. In Optuna 5, an objective may
        call ``Trial.set_constraint`` instead.

    Notes
    -----
    A failed trial, or a trial with the value inf, counts as infeasible: it ranks last in its
    generation. Pruned trials rank after completed ones, ordered by their last reported value.
    If trials have
    constraints, completed trials are ranked by an augmented Lagrangian of their values and
    constraints (docs/constraints.md). Enqueued trials that give all parameters take part in the
    search as points from elsewhere (docs/points-from-elsewhere.md).

    Examples
    --------
    >>> import optuna
    >>> from fmnes.integrations.optuna import FmnesSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -5, 5)
    ...     rate = trial.suggest_float("rate", 1e-6, 1, log=True)
    ...     return (x - 1) ** 2 + abs(rate - 1e-3)
    >>> study = optuna.create_study(sampler=FmnesSampler(seed=1))
    >>> study.optimize(objective, n_trials=300)
    >>> study.best_value < 1e-3
    True
    """

    def __init__(
        self,
        *,
        method: Any = "auto",
        x0: Mapping[str, Any] | None = None,
        sigma0: float = 1 / 6,
        popsize: int | None = None,
        seed: int | None = None,
        n_startup_trials: int = 1,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        search_space: Mapping[str, BaseDistribution] | None = None,
        constraints_func: "Callable[[FrozenTrial], Sequence[float]] | None" = None,
    ) -> None:
        self._settings = read_method_of_fixed_size(method, "in a study").settings
        if not isinstance(x0, Mapping | None):
            raise TypeError(f"x0: expected a dict of parameter names and values, got {x0!r}")
        self._x0 = dict(x0 or {})
        self._sigma0 = checks.finite("sigma0", sigma0, above=0)
        self._popsize = None if popsize is None else checks.integer("popsize", popsize, least=2)
        self._seed = None if seed is None else checks.integer("seed", seed, least=0)
        self._n_startup_trials = checks.integer("n_startup_trials", n_startup_trials, least=0)
        if not isinstance(independent_sampler, BaseSampler | None):
            raise TypeError(
                "independent_sampler: expected a sampler of Optuna or None, "
                f"got {independent_sampler!r}"
            )
        # RandomSampler takes seeds of 32 bits.
        legacy_seed = None if self._seed is None else self._seed % 2**32
        self._independent = independent_sampler or RandomSampler(seed=legacy_seed)
        self._warns = checks.boolean("warn_independent_sampling", warn_independent_sampling)
        self._search_space = _read_space(search_space)
        if constraints_func is not None:
            checks.function("constraints_func", constraints_func)
        self._constraints_func = constraints_func
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()  # trials of one study may be sampled in several threads
        self._study: tuple[Any, int] | None = None
        self._claims = TrialClaims()
        self._search: ReplayedSearch | None = None
        self._warned: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Keep the arguments only: everything else is computed from the study."""
        dropped = ("_lock", "_study", "_claims", "_search", "_warned")
        return {name: value for name, value in vars(self).items() if name not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    # === The methods that Optuna calls, in this order ===

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that are searched together."""
        _check_one_objective(study)
        with self._lock:
            self._read(study)
            if self._search_space is not None:
                return self._search_space.copy()
            return self._claims.common.searched()

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the parameters of the candidate that this trial evaluates."""
        fixed = trial.system_attrs.get("fixed_params", {})
        with self._lock:
            self._read(study)
            if not search_space or self._claims.completed < self._n_startup_trials:
                return {}
            if claim_of(trial) is not None or not search_space.keys().isdisjoint(fixed):
                return {}  # a retried candidate of another trial, or a point that the user gave
            search = self._search_in(study, search_space)
            return search.params(self._claim(study, trial, search))

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value of a parameter that is not searched."""
        _check_one_objective(study)
        started = self._claims.completed >= max(1, self._n_startup_trials)
        if self._warns and started and param_name not in self._warned:
            self._warned.add(param_name)
            logger.warning(
                "parameter %r is sampled by %s and not searched: an enqueued trial fixes others, "
                "or it is not the same in every trial (warn_independent_sampling)",
                param_name,
                type(self._independent).__name__,
            )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Call the same method of the independent sampler."""
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Store the constraints of the trial; call the same method of the independent sampler."""
        if self._constraints_func is not None:
            store_constraints(study, trial, state, self._constraints_func)
        self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Reseed the independent sampler; candidates depend on the study's seed only."""
        self._independent.reseed_rng()

    # === The search ===

    def _read(self, study: Study) -> None:
        if self._study != (study._storage, study._study_id):
            self._study = study._storage, study._study_id
            self._claims, self._search = TrialClaims(), None
        self._claims.read(study)

    def _search_in(self, study: Study, space: dict[str, BaseDistribution]) -> ReplayedSearch:
        """Return the search in this space, with its newest generation."""
        if self._search is None or self._search.space.space != space:
            sign = 1.0 if study.direction == StudyDirection.MINIMIZE else -1.0
            self._search = ReplayedSearch(
                SearchedSpace(space),
                self._claims,
                self._settings,
                self._x0,
                self._sigma0,
                self._popsize,
                sign,
            )
        self._follow(study, self._search)
        return self._search

    def _claim(self, study: Study, trial: FrozenTrial, search: ReplayedSearch) -> int:
        """Claim a row for this trial, so that no other process evaluates it too, and return it.

        A process that has written a claim then reads all others. Of two processes that claimed the
        same row at the same time, at least one sees the other's claim, and chooses again.
        """
        claim = None
        while True:
            claim, known = search.choose(trial.number, self._seed, before=claim)
            study._storage.set_trial_system_attr(trial._trial_id, KEY, claim)
            self._read(study)
            self._follow(study, search)
            if search.holds(trial.number, claim, known):
                return int(claim["row"])

    def _follow(self, study: Study, search: ReplayedSearch) -> None:
        while not search.follow():
            self._read(study)


def _check_one_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            f"study: expected one objective, got {len(study.directions)}; for several objectives "
            "use optuna.samplers.NSGAIISampler or TPESampler"
        )


def _read_space(
    space: Mapping[str, BaseDistribution] | None,
) -> dict[str, BaseDistribution] | None:
    """Return the searched part of a search space, sorted by name."""
    if space is None:
        return None
    for name, distribution in space.items():
        if not isinstance(distribution, BaseDistribution):
            raise TypeError(
                f"search_space[{name!r}]: expected an Optuna distribution, got {distribution!r}"
            )
    return {name: d for name, d in sorted(space.items()) if is_searched(d)}
