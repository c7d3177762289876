"""Slow, literal transcriptions of one generation of each method, sample by sample.

They are written from the equations alone, without the library's tricks: loops over samples,
explicit matrices, explicit sorting. States are plain dicts under the papers' letters. What these
functions and the library agree on, two texts written apart agree on.

Every ``*_ask(state, z)`` returns the population, every ``*_tell(state, z, f)`` the next state.
"""

from equations.transcriptions.auto import (
    auto_ask,
    auto_omega,
    auto_popsize,
    auto_tell,
)
from equations.transcriptions.auto_axes import across, auto_c_mu, auto_R, power
from equations.transcriptions.cma import (
    cma_es_ask,
    cma_es_constants,
    cma_es_tell,
    sep_cma_ask,
    sep_cma_constants,
    sep_cma_tell,
    vd_cma_ask,
    vd_cma_constants,
    vd_cma_tell,
)
from equations.transcriptions.constants import c_1_cr_fm_nes, c_sigma_nes, chi, eta_B_cr_fm_nes
from equations.transcriptions.cr_fm_nes import (
    cr_fm_nes_ask,
    cr_fm_nes_tell,
    not_shorter,
    vd_gradient,
    vd_sample,
)
from equations.transcriptions.fm_nes import dx_nes_ic_ask, dx_nes_ic_tell, fm_nes_ask, fm_nes_tell
from equations.transcriptions.natural import (
    r1_nes_ask,
    r1_nes_tell,
    snes_ask,
    snes_tell,
    xnes_ask,
    xnes_tell,
)
from equations.transcriptions.samples import (
    both_halves,
    phase_and_weights,
    weight_of_each,
    weighted,
)

__all__ = [
    "across",
    "auto_R",
    "auto_ask",
    "auto_c_mu",
    "auto_omega",
    "auto_popsize",
    "auto_tell",
    "both_halves",
    "c_1_cr_fm_nes",
    "c_sigma_nes",
    "chi",
    "cma_es_ask",
    "cma_es_constants",
    "cma_es_tell",
    "cr_fm_nes_ask",
    "cr_fm_nes_tell",
    "dx_nes_ic_ask",
    "dx_nes_ic_tell",
    "eta_B_cr_fm_nes",
    "fm_nes_ask",
    "fm_nes_tell",
    "not_shorter",
    "phase_and_weights",
    "power",
    "r1_nes_ask",
    "r1_nes_tell",
    "sep_cma_ask",
    "sep_cma_constants",
    "sep_cma_tell",
    "snes_ask",
    "snes_tell",
    "vd_cma_ask",
    "vd_cma_constants",
    "vd_cma_tell",
    "vd_gradient",
    "vd_sample",
    "weight_of_each",
    "weighted",
    "xnes_ask",
    "xnes_tell",
]
