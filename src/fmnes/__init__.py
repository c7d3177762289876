"""Black-box optimization with many variables by natural evolution strategies."""

from fmnes._bounds import Bounds as Bounds
from fmnes._checks import PopsizeWarning as PopsizeWarning
from fmnes._config import config as config
from fmnes._config import get_num_threads as get_num_threads
from fmnes._config import set_num_threads as set_num_threads
from fmnes._config import show_config as show_config
from fmnes._history import History as History
from fmnes._minimize import minimize as minimize
from fmnes._optimizer import Optimizer as Optimizer
from fmnes._plot import animate as animate
from fmnes._plot import plot as plot
from fmnes._plot import plot_ecdf as plot_ecdf
from fmnes._plot import plot_runs as plot_runs
from fmnes._restarts import BIPOP as BIPOP
from fmnes._restarts import IPOP as IPOP
from fmnes._result import Result as Result
from fmnes._result import Run as Run
from fmnes._result import Status as Status
from fmnes._stopping import Stopping as Stopping
from fmnes._store import Checkpoint as Checkpoint
from fmnes.algorithms import METHODS as METHODS
from fmnes.algorithms.cma_es import CMAES as CMAES
from fmnes.algorithms.cr_fm_nes import CRFMNES as CRFMNES
from fmnes.algorithms.dx_nes_ic import DXNESIC as DXNESIC
from fmnes.algorithms.fm_nes import FMNES as FMNES
from fmnes.algorithms.r1_nes import R1NES as R1NES
from fmnes.algorithms.sep_cma import SepCMA as SepCMA
from fmnes.algorithms.snes import SNES as SNES
from fmnes.algorithms.vd_cma import VDCMA as VDCMA
from fmnes.algorithms.xnes import XNES as XNES
from fmnes.cluster import Cluster as Cluster
from fmnes.evaluate import EvaluationError as EvaluationError
from fmnes.evaluate import Evaluator as Evaluator
from fmnes.integrations.scipy import scipy_method as scipy_method

from . import problems as problems

__version__ = "0.1.0"
