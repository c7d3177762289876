"""FmnesSampler: our methods as a sampler of Optuna.

Nothing of a search is kept but small claims in the trials (`_optuna_ledger`): every process that
samples for a study rebuilds the state from them, to the bit. So a study is resumed by opening it,
and processes that work on the same one need not know of each other.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from fmnes import _checks as checks
from fmnes._start import read_method

try:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError("FmnesSampler needs Optuna: pip install 'fmnes[optuna]'") from error

from fmnes.integrations._optuna_ledger import KEY, Ledger, claim_of
from fmnes.integrations._optuna_search import Search
from fmnes.integrations._optuna_space import Cube, is_searched

logger = logging.getLogger("fmnes")


class FmnesSampler(BaseSampler):
    """A sampler of Optuna: CR-FM-NES, or another method of ours, for numerical parameters.

    Floats, integers, logarithmic ranges and steps are searched together, every range as [0, 1].
    Categorical parameters, and those that not every completed trial had, are sampled by
    ``independent_sampler``. One objective, to be minimised or maximised.

    Parameters
    ----------
    method : str or settings
        "cr-fm-nes" (the default), another name of `fmnes.METHODS`, or settings such as
        ``fmnes.CRFMNES(variant="paper")``.
    x0 : dict, optional
        Where to start, by parameter name, as in ``study.best_params``; the middle of the range
        for those not given. Names that are not searched do not matter.
    sigma0 : float
        Initial standard deviation in parts of a range.
    popsize : int, optional
        Trials per generation; by default the method's. With n workers, a multiple of n keeps all
        of them busy to some purpose.
    seed : int, optional
        Everything follows from it. Where a study already holds a search with these settings, that
        search goes on with its own seed.
    n_startup_trials : int
        Completed trials before the search starts; until then, and in any case until it is known
        which parameters there are, ``independent_sampler`` samples.
    independent_sampler : BaseSampler, optional
        For all that is not searched. A RandomSampler by default.
    warn_independent_sampling : bool
        Log which parameters are not searched, once each.
    search_space : dict of str to BaseDistribution, optional
        The parameters, where you know them beforehand; with ``n_startup_trials=0`` the first trial
        is the first candidate.

    Notes
    -----
    A failed trial, or one with the value inf, counts as infeasible: worse than all others of its
    generation. Pruned trials rank after completed ones, by their last reported value; trials that
    break a constraint (``Trial.set_constraint``) after those. Enqueued trials are not told.

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
        method: Any = "cr-fm-nes",
        x0: Mapping[str, Any] | None = None,
        sigma0: float = 1 / 6,
        popsize: int | None = None,
        seed: int | None = None,
        n_startup_trials: int = 1,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        search_space: Mapping[str, BaseDistribution] | None = None,
    ) -> None:
        self._settings = read_method(method).settings
        if x0 is not None and not isinstance(x0, Mapping):
            raise TypeError(f"x0: expected a dict of parameter names and values, got {x0!r}")
        self._x0 = dict(x0 or {})
        deviation = None if sigma0 is None else checks.real("sigma0", sigma0, above=0)
        if deviation is None:
            raise TypeError("sigma0: expected a number > 0, got None")
        self._sigma0 = deviation
        self._popsize = None if popsize is None else checks.integer("popsize", popsize, least=2)
        self._seed = None if seed is None else checks.integer("seed", seed, least=0)
        self._n_startup_trials = checks.integer("n_startup_trials", n_startup_trials, least=0)
        if not isinstance(independent_sampler, BaseSampler | None):
            raise TypeError(
                "independent_sampler: expected a sampler of Optuna's or None, "
                f"got {independent_sampler!r}"
            )
        self._independent = independent_sampler or RandomSampler(
            seed=None
            if self._seed is None
            else self._seed % 2**32  # all that NumPy's older one takes
        )
        self._warn_independent_sampling = warn_independent_sampling
        self._search_space = _read_space(search_space)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()  # trials of one study may be sampled in several threads
        self._study: tuple[Any, int] | None = None
        self._ledger = Ledger()
        self._search: Search | None = None
        self._warned: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """The arguments only: all else is in the study."""
        dropped = ("_lock", "_study", "_ledger", "_search", "_warned")
        return {name: value for name, value in vars(self).items() if name not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    # === What Optuna calls, in this order ===

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that are searched together."""
        _check_one_objective(study)
        with self._lock:
            self._read(study)
            if self._search_space is not None:
                return self._search_space.copy()
            return self._ledger.common.searched()

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of the candidate that this trial evaluates."""
        fixed = trial.system_attrs.get("fixed_params", {})
        with self._lock:
            self._read(study)
            if not search_space or self._ledger.completed < self._n_startup_trials:
                return {}
            if claim_of(trial) is not None or not search_space.keys().isdisjoint(fixed):
                return {}  # another trial's candidate tried again, or a point of the user's
            search = self._search_in(study, search_space)
            return search.params(self._claim(study, trial, search))

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The value of a parameter that is not searched."""
        _check_one_objective(study)
        started = self._ledger.completed >= max(1, self._n_startup_trials)
        if self._warn_independent_sampling and started and param_name not in self._warned:
            self._warned.add(param_name)
            logger.warning(
                "parameter %r is sampled by %s, not searched: it is categorical, fixed by a trial "
                "that was enqueued, or not the same in every trial (warn_independent_sampling)",
                param_name,
                type(self._independent).__name__,
            )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Passed on to the independent sampler."""
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Passed on to the independent sampler."""
        self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Passed on to the independent sampler: candidates are not drawn from a sequence."""
        self._independent.reseed_rng()

    # === The search ===

    def _read(self, study: Study) -> None:
        if self._study != (study._storage, study._study_id):
            self._study = study._storage, study._study_id
            self._ledger, self._search = Ledger(), None
        self._ledger.read(study)

    def _search_in(self, study: Study, space: dict[str, BaseDistribution]) -> Search:
        """The search in this space, where it stands now."""
        if self._search is None or self._search.cube.space != space:
            sign = 1.0 if study.direction == StudyDirection.MINIMIZE else -1.0
            self._search = Search(
                Cube(space),
                self._ledger,
                self._settings,
                self._x0,
                self._sigma0,
                self._popsize,
                sign,
            )
        self._follow(study, self._search)
        return self._search

    def _claim(self, study: Study, trial: FrozenTrial, search: Search) -> int:
        """The row that this trial evaluates, claimed so that no other process takes it too.

        Whoever writes a claim reads all others after that: of two who took the same row at the
        same time, one at least sees it, and chooses again.
        """
        claim = None
        while True:
            claim, known = search.choose(trial.number, self._seed, before=claim)
            study._storage.set_trial_system_attr(trial._trial_id, KEY, claim)
            self._read(study)
            self._follow(study, search)
            if search.holds(trial.number, claim, known):
                return int(claim["row"])

    def _follow(self, study: Study, search: Search) -> None:
        while not search.follow():
            self._read(study)


def _check_one_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            f"study: expected one objective, got {len(study.directions)}; for several there are "
            "optuna.samplers.NSGAIISampler and TPESampler"
        )


def _read_space(
    space: Mapping[str, BaseDistribution] | None,
) -> dict[str, BaseDistribution] | None:
    """A search space of the user's, sorted; only what can be searched."""
    if space is None:
        return None
    for name, distribution in space.items():
        if not isinstance(distribution, BaseDistribution):
            raise TypeError(
                f"search_space[{name!r}]: expected a distribution of Optuna's, got {distribution!r}"
            )
    return {name: d for name, d in sorted(space.items()) if is_searched(d)}
