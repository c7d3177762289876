"""What the paper claims, with the measured numbers and a verdict computed from them."""

import math
from typing import NamedTuple

from fmnes.experiments import readings
from fmnes.experiments.checks import FEW, Check
from fmnes.experiments.statistics import Table


class Claim(NamedTuple):
    """Some words of the paper, how we read them in numbers, and what the rows say to that."""

    where: str
    quote: str  # exactly as it stands there, but for LaTeX; nothing where the claim is ours
    reading: str  # with the threshold of every check
    checks: tuple[Check, ...]

    @property
    def words(self) -> tuple[str, str]:
        """The paper's and ours."""
        if not self.quote:
            return "No claim of the paper.", f"What the ablation adds: {self.reading}"
        return f"“{self.quote}”", f"Our reading: {self.reading}"

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
        decided = [check for check in self.checks if check.outcome in ("holds", "fails")]
        least = min((check.trials for check in decided), default=FEW)
        few = f", some by {least:g} trials only" if least < FEW else ""
        return f"{self.count('holds')} of {len(decided)}{few}" + "".join(others)

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
        Claim(where, quote, reading, tuple(checks(table)))
        for where, quote, reading, checks in _CLAIMS
    ]


_CLAIMS = (
    (
        "III-A",
        "the performance of sep-CMA-ES deteriorates on problems with variable dependencies, and "
        "the performance of R1-NES deteriorates on ill-conditioned problems. We can alleviate "
        "these issues by employing the representation ...",
        "at d = 80 methods with v and D (VD-CMA, both variants of CR-FM-NES) solve these problems, "
        "and the others need more: Sep-CMA over them is above 2 on the rotated cigar and above 1 "
        "on Rosenbrock, R1-NES over them above 2 on ellipsoid and k-tablet.",
        readings.representations,
    ),
    (
        "III-C",
        "We determined this equation [of eta_B] by fitting a parametric model ...",
        "no multiple of eta_B saves a quarter of the evaluations over the five functions together: "
        "its ratio to the fitted one is typically above 0.75.",
        readings.eta_B,
    ),
    (
        "IV-B",
        "For the Ellipsoid, the k-Tablet, and the Rosenbrock functions, CR-FM-NES has achieved a "
        "significant speedup compared to FM-NES. ... the result in the Rastrigin function implies "
        "that CR-FM-NES does not lose its efficiency even in multimodal problems.",
        "at d = 80 CR-FM-NES needs several times fewer evaluations than FM-NES on ellipsoid and "
        "k-tablet (above 2), about half on Rosenbrock (typically above 1.5 and below 3), and no "
        "more on Rastrigin (typically above 0.95).",
        readings.against_fm_nes,
    ),
    (
        "IV-B",
        "We argue that this is because the number of parameters of the covariance matrix in "
        "CR-FM-NES is 2d + 1 ..., which enables us to set the learning rates much higher than "
        "those in FM-NES ...",
        "at d = 80 the rates eta_B and c_1 are higher than those of FM-NES (above 2; of its "
        "eta_B that of the movement phase, the largest), CR-FM-NES is ahead (above 1), and a "
        "quarter of eta_B costs it evaluations (above 1.05). That makes the rates a cause; whether "
        "they are the only one is not asked.",
        readings.learning_rates,
    ),
    (
        "IV-B",
        "CR-FM-NES will fail to perform optimization in problems whose inverse Hessian of the "
        "objective function cannot be approximated by the covariance matrix ...",
        "at d = 80 on a rotated ellipsoid with 40 long axes FM-NES, whose covariance is a full "
        "matrix, succeeds, and CR-FM-NES, in either variant, does not, or needs more evaluations "
        "by orders of magnitude (above 100).",
        readings.beyond_the_covariance,
    ),
    (
        "IV-B",
        "We can confirm that the computational time of FM-NES increases rapidly as the dimension "
        "number increases, while that of CR-FM-NES is fairly small.",
        "the time per iteration of CR-FM-NES stays flat (at d = 100 over d = 10: below 2) where "
        "that of FM-NES grows (above 2), and as d^3, its complexity by section I (at d = 100 over "
        "d = 50: above 5.66 and below 11.3).",
        readings.time,
    ),
    (
        "IV-C",
        "For the Ellipsoid and the k-Tablet functions where the inverse Hessian can be "
        "approximated by even a diagonal matrix, the performance of CR-FM-NES is competitive with "
        "that of Sep-CMA.",
        "at d >= 200 CR-FM-NES is at least level with Sep-CMA on ellipsoid and k-tablet (typically "
        "above 0.8).",
        readings.level_with_sep_cma,
    ),
    (
        "IV-C",
        "for the Rosenbrock function ... the efficiency of CR-FM-NES increases substantially "
        "compared to Sep-CMA, and it also shows better performance than VD-CMA.",
        "at d >= 200 CR-FM-NES is ahead of both on Rosenbrock, of Sep-CMA substantially (above "
        "1.5), of VD-CMA (above 1).",
        readings.ahead_on_rosenbrock,
    ),
    (
        "IV-C",
        "From the results of the Rastrigin function, we might argue that CR-FM-NES is efficient "
        "even in high-dimensional multimodal problems.",
        "at d >= 200 CR-FM-NES is ahead on Rastrigin, of VD-CMA and of Sep-CMA (above 1).",
        readings.ahead_on_rastrigin,
    ),
    (
        "IV-C",
        "VD-CMA shows clearly better performance than R1-NES.",
        "at d = 80 R1-NES over VD-CMA is above 1.2 on each of four functions.",
        readings.vd_cma_against_r1_nes,
    ),
    (
        "IV-C",
        "We believe that the performance difference between CR-FM-NES and VD-CMA is originated "
        "from the one in FM-NES and CMA-ES; CR-FM-NES inherits the efficiency of FM-NES ...",
        "CR-FM-NES beats VD-CMA (above 1), and without what it inherits, distance weights, the "
        "phases' learning rates, or both, it needs 5 % more evaluations (above 1.05), on each "
        "function.",
        readings.ablation,
    ),
    (
        "ours",
        "",
        "the rank-one update counts as well: without it CR-FM-NES needs 5 % more evaluations "
        "(above 1.05), on each function.",
        readings.rank_one,
    ),
)
