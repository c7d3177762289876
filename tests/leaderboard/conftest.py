"""The package benchmarks/leaderboard is imported as its command does."""

import sys

from benchmark_modules import BENCHMARKS

sys.path.append(str(BENCHMARKS))
