"""The arrays that kernels share with the host: every place has its name, on both sides the same."""

import pytest

from fmnes.algorithms import cr_fm_nes
from fmnes.engines import triton_kernels as kernels
from fmnes.engines.contract import Generation

pytestmark = pytest.mark.arrays
CONSTANTS, RATES = cr_fm_nes.tables(cr_fm_nes.params(10, 10))


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (kernels.NUMBERS, ""),
        (kernels.CONSTANTS, ""),
        (kernels.RATES, "T_"),
        (kernels.PAIRS, ""),
        (kernels.FIGURES, "F_"),
    ],
)
def test_the_kernels_know_each_place_by_its_name(names, prefix):
    places = [getattr(kernels, prefix + name.upper()).value for name in names]
    assert places == list(range(len(names)))


def test_the_names_are_those_of_the_host():
    assert set(kernels.CONSTANTS) == {"dim", "popsize", "eps", "tolx", *CONSTANTS}
    assert set(kernels.RATES) == set(RATES)
    assert Generation._fields == kernels.FIGURES


def test_the_kinds_of_partial_results():
    """`settle` writes each kind, and `report` reads it."""
    kinds = [
        *(kernels.V_NORM2, kernels.PATH2, kernels.V_LARGEST, kernels.D_LEAST, kernels.D_MOST),
        *(kernels.LEAST, kernels.MOST, kernels.MEAN_SIZE, kernels.TOO_LARGE),
    ]
    assert [kind.value for kind in kinds] == list(range(kernels.KINDS))
