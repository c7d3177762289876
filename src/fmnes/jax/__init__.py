"""Searches as pure functions for JAX: `init`, `ask` and `tell` work under jit, scan and vmap.

Importing this module imports JAX; ``import fmnes`` does not. `fmnes.jax.evosax` has the same
searches with the methods and arguments of evosax.
"""

try:
    import jax as _jax  # noqa: F401  to say what to install if it is missing
except ImportError as error:
    raise ImportError("fmnes.jax needs JAX: pip install 'fmnes[jax]'") from error

from fmnes.jax._begin import init as init
from fmnes.jax._begin import restart as restart
from fmnes.jax._generation import ask as ask
from fmnes.jax._generation import tell as tell
from fmnes.jax._search import Metrics as Metrics
from fmnes.jax._search import Search as Search
from fmnes.jax._search import best as best
from fmnes.jax._search import mean as mean
from fmnes.jax._sharding import shardings as shardings
from fmnes.jax._stopping import Reasons as Reasons
