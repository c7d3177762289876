"""The suites by name."""

from leaderboard.coco import Constrained, LargeScale, MixInt, Noisy
from leaderboard.lsgo import LSGO
from leaderboard.real import RealProblems
from leaderboard.rotated import Rotated
from leaderboard.trials import Suite

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        LargeScale(), RealProblems(), Rotated(), LSGO(), Noisy(), MixInt(), Constrained(),
    )
}  # fmt: skip
