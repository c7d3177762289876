"""Figures: one run, several runs side by side, and the sampling distribution over time."""

from fmnes._plot._animation import animate as animate
from fmnes._plot._compare import plot_ecdf as plot_ecdf
from fmnes._plot._compare import plot_runs as plot_runs
from fmnes._plot._course import plot as plot
