"""The goals for one H200, beside what was measured, and what bounds the figures that miss them."""

import math

import pages

# Milliseconds of a generation by the number of variables; of streaming at 10^9, without objective.
GOALS = {10**3: 0.25, 10**5: 0.35, 10**6: 0.7, 10**7: 4.0, 10**9: 450.0}
SOLVERS = {
    "PyTorch": ("fmnes PyTorch", "fmnes PyTorch, streaming"),
    "PyTorch, `auto`": ("fmnes PyTorch, auto",),
    "JAX, `Optimizer`": ("fmnes JAX",),
    "`fmnes.jax` in a scan": ("fmnes.jax in a scan",),
}
# What the figures of other rows say about the time of a generation.
HOST_OF_TORCH = (
    "the host, which makes the same calls as at 10^5 ({same:.3g} ms); the rounds took "
    "{fastest:.3g} ms and more"
)
AXES = "the kernels of the axes and the scouts: `cr-fm-nes` takes {same:.3g} ms"
HOST_OF_JAX = "the host, which starts three programs and waits once: in a scan {scan:.3g} ms"
PASSES_OF_JAX = "the passes that XLA makes over the draws: in a scan {scan:.3g} ms"
PASSES = "the passes that XLA makes over the draws; the Triton kernels take {torch:.3g} ms"
DRAWS = "the draws: {normals:.0f} × 10^9 in a generation, which is {rate:.0f} × 10^9 a second"


def table(figures):
    """A row for each goal and solver, in Markdown."""
    measured = {(row["solver"], row["dim"]): row for row in figures["rows"] if "ms" in row}
    rows = []
    for dim, goal in GOALS.items():
        for title, names in SOLVERS.items():
            found = [measured[name, dim] for name in names if (name, dim) in measured]
            for row in found:
                met = row["ms"] <= goal
                why = "" if met else bound(row, measured)
                verdict = "yes" if met else "no"
                power = round(math.log10(dim))
                rows.append([f"10^{power}", title, f"{goal:g}", f"{row['ms']:.3g}", verdict, why])
    return pages.table(["d", "solver", "goal, ms", "measured, ms", "met", "bounded by"], rows)


def bound(row, measured):
    """What takes the time of a generation that misses its goal."""
    solver, dim, popsize = row["solver"], row["dim"], row["popsize"]
    if solver == "fmnes PyTorch, streaming":  # two passes over the pairs, one for each candidate
        normals = 2 * popsize * dim / 1e9
        return DRAWS.format(normals=normals, rate=normals / row["ms"] * 1e3)
    if solver == "fmnes PyTorch":
        same = measured["fmnes PyTorch", 10**5]["ms"]
        return HOST_OF_TORCH.format(same=same, fastest=row["fastest_ms"])
    if solver == "fmnes PyTorch, auto":
        return AXES.format(same=measured["fmnes PyTorch", dim]["ms"])
    if solver == "fmnes JAX":
        scan = measured["fmnes.jax in a scan", dim]["ms"]
        return (HOST_OF_JAX if scan < row["ms"] / 1.5 else PASSES_OF_JAX).format(scan=scan)
    return PASSES.format(torch=measured["fmnes PyTorch", dim]["ms"])
