"""One method on NumPy, and the same on another array library with the same draws."""

import numpy as np

from fmnes.algorithms import METHODS, Shape

DIM = 10


def to_numpy(value):
    """From any library, in double precision."""
    return np.asarray(value, dtype=np.float64)


def ellipsoid(x):
    """Condition 1e6, on the host whatever the library: ranks are to be the same."""
    x = to_numpy(x)
    return np.sum(10 ** (6 * np.arange(x.shape[-1]) / (x.shape[-1] - 1)) * x * x, axis=-1)


class Search:
    """The pure functions of a method, with constants and draws."""

    def __init__(self, method, dim=DIM, dtype=np.float64, **settings):
        self.module, self.dim, self.dtype = METHODS[method], dim, dtype
        self.popsize = self.module.default_popsize(dim)
        self.popsize += self.popsize % 2
        self.params = self.module.params(dim, self.popsize, self.module.Settings(**settings))
        self.rows = self.popsize // 2 if self.module.ANTITHETIC else self.popsize

    def first(self, array):
        """The first state; ``array(value, dtype)`` makes the arrays.

        No two axes are equal, because the eigenvectors of equal ones are anybody's choice.
        """
        v = np.random.default_rng(0).normal(size=self.dim)
        D = np.exp(np.linspace(0, 1, self.dim))
        return self.module.init(
            self.params,
            array(np.full(self.dim, 3.0), self.dtype),
            array(2.0, self.dtype),
            Shape(D=array(D, self.dtype)),
            array(v, self.dtype),
        )

    def draws(self, generation):
        return np.random.default_rng([1, generation]).normal(size=(self.rows, self.dim))

    def compiled(self):
        """The same functions under JAX's jit, the constants being constants."""
        return Compiled(self.module, self.params)

    def refreshed(self, state, generation, refresh=None):
        """As the shell does: some methods look at their matrix every so many generations."""
        every = getattr(self.params, "refresh_every", 0)
        if not every or (generation + 1) % every:
            return state
        return (refresh or self.module.refresh)(self.params, state)


class Compiled:
    """Functions of a method, compiled for one set of constants."""

    def __init__(self, module, params):
        import jax

        self.ask_jitted = jax.jit(lambda state, z: module.ask(params, state, z))
        self.tell_jitted = jax.jit(lambda state, z, f: module.tell(params, state, z, f))
        self.refresh_jitted = jax.jit(lambda state: module.refresh(params, state))

    def ask(self, params, state, z):
        return self.ask_jitted(state, z)

    def tell(self, params, state, z, f):
        return self.tell_jitted(state, z, f)

    def refresh(self, params, state):
        return self.refresh_jitted(state)


def numpy_array(value, dtype):
    return np.array(value, dtype)


def comparable(state):
    """The fields of a state; eigenvectors, whose signs are free, as the matrix they make up."""
    fields = {name: to_numpy(value) for name, value in state._asdict().items()}
    if "C" in fields:  # CMA-ES
        B, D = fields.pop("B"), fields.pop("D")
        fields["B D^2 B^T"] = (B * D**2) @ B.T
    if "evidence" in fields:  # auto: sums that cancel, of numbers as large as 1 and as D_noise / d
        fields["evidence"] = fields["evidence"] + 1
        fields["D_signal"] = fields["D_signal"] + fields["D_noise"] / fields["mean"].shape[0]
    return fields


def with_signs_of(state, other, array):
    """A state of CMA-ES whose eigenvectors point the way that another's do.

    Libraries choose their signs as they like, and the candidates with them.
    """
    if "C" not in state._fields:
        return state
    signs = np.sign(np.sum(to_numpy(state.B) * to_numpy(other.B), axis=0))
    return state._replace(B=state.B * array(signs, str(state.B.dtype).split(".")[-1]))


def assert_close(ours, theirs, rtol):
    """Field by field, relative to the largest entry of each."""
    mine, other = comparable(ours), comparable(theirs)
    assert mine.keys() == other.keys()
    for name, value in mine.items():
        scale = np.max(np.abs(value), initial=0)
        np.testing.assert_allclose(other[name], value, rtol=0, atol=rtol * scale, err_msg=name)
