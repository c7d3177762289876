"""What the paper claims, with the measured numbers and a verdict computed from them."""

import math
from typing import NamedTuple

from fmnes.experiments import readings
from fmnes.experiments.checks import Check
from fmnes.experiments.statistics import Table


class Claim(NamedTuple):
    """Some words of the paper, and what the rows say to them."""

    where: str
    words: str
    checks: tuple[Check, ...]

    def count(self, outcome: str) -> int:
        """How many of the checks came out so."""
        return sum(check.outcome == outcome for check in self.checks)

    @property
    def held(self) -> str:
        """How the checks came out."""
        others = [
            f", {count} {outcome}"
            for outcome in ("undecided", "not run")
            if (count := self.count(outcome))
        ]
        decided = self.count("holds") + self.count("fails")
        return f"{self.count('holds')} of {decided}" + "".join(others)

    @property
    def verdict(self) -> str:
        """From the checks alone."""
        hold, fail, missing = map(self.count, ("holds", "fails", "not run"))
        if not (hold or fail):
            return "not run" if missing == len(self.checks) else "undecided"
        if hold and fail:
            return "confirmed in part"
        verdict = "confirmed" if hold else "contradicted"
        return verdict if hold + fail == len(self.checks) else f"{verdict} as far as decided"

    @property
    def measured(self) -> list[str]:
        """For each pair the range of its ratios, by place; where that is long, by dimension."""
        pairs: dict[str, dict[str, list[float]]] = {}
        many = len({check.where for check in self.checks}) > 6
        for check in self.checks:
            where = check.where[-1] if many else ", ".join(check.where)
            if check.ratios:
                pairs.setdefault(check.pair, {}).setdefault(where, []).extend(check.ratios)
        return [
            f"{pair}: " + "; ".join(f"{_range(ratios)} ({where})" for where, ratios in each.items())
            for pair, each in pairs.items()
        ]


def _range(ratios: list[float]) -> str:
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    if not known:
        return "neither solves it"
    low, high = _times(min(known)), _times(max(known))
    return low if low == high else f"{low} to {high}"


def _times(ratio: float) -> str:
    """In a few digits; where one side never succeeded, in its usual sign."""
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}".replace("inf", "∞")


def claims(table: Table) -> list[Claim]:
    """All of them, in the order of the paper."""
    return [
        Claim(where, words, tuple(checks(table)))
        for where, words, checks in (
            (
                "III-A",
                "The performance of Sep-CMA deteriorates on problems with variable dependencies, "
                "that of R1-NES on ill-conditioned problems; the representation with v and D "
                "alleviates both.",
                readings.representations,
            ),
            (
                "III-C",
                "The learning rate eta_B was fitted. (Our reading: no other multiple of it is much "
                "better over the five functions together.)",
                readings.eta_B,
            ),
            (
                "IV-B",
                "At d = 80 CR-FM-NES needs several times fewer evaluations than FM-NES on "
                "ellipsoid and k-tablet, about half on Rosenbrock, and no more on Rastrigin.",
                readings.against_fm_nes,
            ),
            (
                "IV-B",
                "The computation time of FM-NES increases rapidly with d (as d^3), while that of "
                "CR-FM-NES stays flat.",
                readings.time,
            ),
            (
                "IV-C",
                "At d >= 200, on ellipsoid and k-tablet, CR-FM-NES is competitive with Sep-CMA.",
                readings.level_with_sep_cma,
            ),
            (
                "IV-C",
                "On Rosenbrock CR-FM-NES is substantially ahead of Sep-CMA, and ahead of VD-CMA.",
                readings.ahead_on_rosenbrock,
            ),
            ("IV-C", "CR-FM-NES is ahead on Rastrigin.", readings.ahead_on_rastrigin),
            (
                "IV-C",
                "VD-CMA shows clearly better performance than R1-NES.",
                readings.vd_cma_against_r1_nes,
            ),
            (
                "IV-C",
                "CR-FM-NES beats VD-CMA because of what it inherits from FM-NES: distance weights "
                "and phases. (Our reading: it beats VD-CMA, and without them it needs at least 5 % "
                "more evaluations.)",
                readings.ablation,
            ),
            (
                "ours",
                "The rank-one update counts as well. (No claim of the paper: what the ablation "
                "adds.)",
                readings.rank_one,
            ),
        )
    ]
