"""Black-box optimization with many variables by natural evolution strategies."""

import types as _types

from fmnes import _early_interrupt as _early_interrupt  # first of all our imports
from fmnes import problems as problems
from fmnes._config import config as config
from fmnes._config import get_num_threads as get_num_threads
from fmnes._config import set_num_threads as set_num_threads
from fmnes._config import show_config as show_config
from fmnes._minimize import minimize as minimize
from fmnes._optimizer import Optimizer as Optimizer
from fmnes._plot import animate as animate
from fmnes._plot import plot as plot
from fmnes._plot import plot_ecdf as plot_ecdf
from fmnes._plot import plot_runs as plot_runs
from fmnes._reevaluate import reevaluate as reevaluate
from fmnes._version import __version__ as __version__
from fmnes.algorithms import METHODS as METHODS
from fmnes.algorithms.auto import Auto as Auto
from fmnes.algorithms.cma_es import CMAES as CMAES
from fmnes.algorithms.cr_fm_nes import CRFMNES as CRFMNES
from fmnes.algorithms.dx_nes_ic import DXNESIC as DXNESIC
from fmnes.algorithms.fm_nes import FMNES as FMNES
from fmnes.algorithms.r1_nes import R1NES as R1NES
from fmnes.algorithms.sep_cma import SepCMA as SepCMA
from fmnes.algorithms.snes import SNES as SNES
from fmnes.algorithms.vd_cma import VDCMA as VDCMA
from fmnes.algorithms.xnes import XNES as XNES
from fmnes.arguments.method import PopsizeWarning as PopsizeWarning
from fmnes.constraints.kinds import Constraints as Constraints
from fmnes.evaluate import EvaluationError as EvaluationError
from fmnes.evaluate import Evaluator as Evaluator
from fmnes.evaluate.cluster import Cluster as Cluster
from fmnes.integrations.scipy import scipy_method as scipy_method
from fmnes.records.history import History as History
from fmnes.records.parts import Noise as Noise
from fmnes.records.parts import Run as Run
from fmnes.records.result import Result as Result
from fmnes.records.status import Status as Status
from fmnes.records.stopping import Stopping as Stopping
from fmnes.runs.restarts import BIPOP as BIPOP
from fmnes.runs.restarts import IPOP as IPOP
from fmnes.storage.checkpoint import Checkpoint as Checkpoint
from fmnes.variables.bounds import Bounds as Bounds
from fmnes.variables.kinds import Choice as Choice
from fmnes.variables.kinds import Int as Int
from fmnes.variables.kinds import Log as Log
from fmnes.variables.kinds import Real as Real
from fmnes.variables.space import Space as Space

_MODULES = ("evaluate", "integrations", "jax", "problems")  # that users import from


def __dir__() -> list[str]:
    """Return the names that completion and ``dir(fmnes)`` show: not the modules inside."""
    inner = {name for name, value in globals().items() if isinstance(value, _types.ModuleType)}
    shown = {name for name in globals().keys() - inner if not name.startswith("_")}
    return sorted(shown | {"__version__"} | inner.intersection(_MODULES))
