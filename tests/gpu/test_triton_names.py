"""The arrays that kernels share with the host: every place has its name, on both sides the same."""

import pytest

from fmnes.algorithms import cr_fm_nes
from fmnes.engines.contract import Generation
from fmnes.engines.triton_kernels import figures, names

pytestmark = pytest.mark.arrays
CONSTANTS, RATES = cr_fm_nes.tables(cr_fm_nes.params(10, 10))


@pytest.mark.parametrize(
    ("row", "prefix"),
    [
        (names.NUMBERS, ""),
        (names.CONSTANTS, ""),
        (names.RATES, "T_"),
        (names.PAIRS, ""),
        (names.FIGURES, "F_"),
    ],
)
def test_the_kernels_know_each_place_by_its_name(row, prefix):
    places = [getattr(names, prefix + name.upper()).value for name in row]
    assert places == list(range(len(row)))


def test_the_names_are_those_of_the_host():
    assert set(names.CONSTANTS) == {"dim", "popsize", "eps", "tolx", *CONSTANTS}
    assert set(names.RATES) == set(RATES)
    assert Generation._fields == names.FIGURES


def test_the_kinds_of_partial_results():
    """`settle` writes each kind, and `report` reads it."""
    kinds = [
        *(figures.V_NORM2, figures.PATH2, figures.V_LARGEST, figures.D_LEAST, figures.D_MOST),
        *(figures.LEAST, figures.MOST, figures.MEAN_SIZE, figures.TOO_LARGE),
    ]
    assert [kind.value for kind in kinds] == list(range(figures.KINDS))
