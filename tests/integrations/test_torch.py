"""Modules of PyTorch as objectives: which parameters, which values, and what stays untouched."""

import doctest
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import fmnes

torch = pytest.importorskip("torch", reason="PyTorch is not installed (fmnes[torch])")

from fmnes.integrations import torch as integration  # noqa: E402
from fmnes.integrations.torch import ModuleObjective  # noqa: E402

pytestmark = pytest.mark.arrays


class Dense(torch.nn.Module):
    """Two layers, one of them frozen, and a buffer that scales."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Linear(3, 4, dtype=dtype)
        self.frozen = torch.nn.Linear(4, 4, dtype=dtype).requires_grad_(False)
        self.last = torch.nn.Linear(4, 1, dtype=dtype)
        self.register_buffer("scale", torch.tensor(2.0, dtype=dtype))

    def forward(self, x):
        return self.last(self.frozen(torch.tanh(self.scale * self.first(x))))


def inputs(dtype=torch.float64):
    return torch.arange(15.0, dtype=dtype).reshape(5, 3) / 7


def mean_square(model):
    return (model(inputs()) ** 2).mean()


def by_hand(module, x):
    """The loss of `Dense` from its flat parameters, in NumPy."""
    W1, b1, W3, b3 = x[:12].reshape(4, 3), x[12:16], x[16:20].reshape(1, 4), x[20:]
    W2, b2 = (p.detach().numpy() for p in module.frozen.parameters())
    hidden = np.tanh(2 * (inputs().numpy() @ W1.T + b1))
    return (((hidden @ W2.T + b2) @ W3.T + b3) ** 2).mean()


def candidates(objective, n=6):
    return objective.x0 + np.random.default_rng(1).normal(size=(n, len(objective.x0)))


def state_of(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def assert_same(module, state):
    for name, value in module.state_dict().items():
        assert torch.equal(value, state[name]), name


def test_the_values_are_those_of_the_formula():
    objective = ModuleObjective(Dense(), mean_square)
    x = candidates(objective)
    expected = [by_hand(objective.module, row) for row in x]
    np.testing.assert_allclose(objective(x), expected, rtol=1e-13)
    np.testing.assert_allclose([objective(row) for row in x], expected, rtol=1e-13)


def test_x0_are_the_parameters_that_are_trained_in_float64():
    module = Dense(torch.float32)
    objective = ModuleObjective(module, lambda model: model(inputs(torch.float32)).mean())
    trained = [module.first.weight, module.first.bias, module.last.weight, module.last.bias]
    expected = np.concatenate([p.detach().numpy().ravel() for p in trained])
    assert objective.x0.dtype == np.float64
    np.testing.assert_array_equal(objective.x0, expected)


def test_vmap_and_loop_agree_to_rounding():
    module = Dense()
    x = candidates(ModuleObjective(module, mean_square))
    batched, loop, chunks = (
        ModuleObjective(module, mean_square, **options)(x)
        for options in ({}, {"batched": False}, {"chunk_size": 4})
    )
    np.testing.assert_allclose(batched, loop, rtol=1e-13)
    np.testing.assert_allclose(batched, chunks, rtol=1e-13)


def test_a_read_only_array_and_a_tensor_give_the_same():
    objective = ModuleObjective(Dense(), mean_square)
    x = candidates(objective)
    expected = objective(x)
    tensor = torch.tensor(x)
    x.setflags(write=False)
    np.testing.assert_array_equal(objective(x), expected)
    np.testing.assert_array_equal(objective(tensor), expected)


def test_the_module_is_untouched_until_it_is_loaded():
    module = Dense()
    objective = ModuleObjective(module, mean_square)
    before = state_of(module)
    result = fmnes.minimize(
        objective, objective.x0, 0.3, method="cr-fm-nes", maxiter=20, vectorized=True, rng=1
    )
    assert_same(module, before)
    assert objective.load(result.x) is module
    assert mean_square(module).item() == pytest.approx(result.fun, rel=1e-13)
    assert torch.equal(module.frozen.weight, before["frozen.weight"])
    assert module.first.weight.requires_grad
    np.testing.assert_array_equal(ModuleObjective(module, mean_square).x0, result.x)


def test_what_is_loaded_is_what_was_evaluated_also_in_float32():
    module = Dense(torch.float32)
    objective = ModuleObjective(
        module, lambda model: (model(inputs(torch.float32)) ** 2).mean(), batched=False
    )
    x = objective.x0 + 0.1234567890123456
    value = objective(x)
    assert (objective.load(x)(inputs(torch.float32)) ** 2).mean().item() == value


def test_chosen_parameters():
    module = Dense()
    objective = ModuleObjective(module, mean_square, parameters=["last.bias", "frozen.bias"])
    np.testing.assert_array_equal(
        objective.x0, np.r_[module.frozen.bias.numpy(), module.last.bias.detach().numpy()]
    )
    before = state_of(module)
    objective.load(np.arange(5.0))
    assert module.last.bias.tolist() == [4.0]
    assert module.frozen.bias.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert torch.equal(module.first.weight, before["first.weight"])


def test_tied_weights_are_one():
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
    )
    module[1].weight = module[0].weight
    objective = ModuleObjective(module, lambda model: model(torch.ones(1, 2)).sum())
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    W = x.reshape(2, 2)
    assert objective(x)[0] == (W @ W @ np.ones(2)).sum()


@pytest.mark.parametrize("batched", [True, False])
def test_running_statistics_are_copies(batched):
    """BatchNorm in training mode: every candidate begins with the module's own."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double().train()
    before = state_of(module)

    def loss(model):
        return model(inputs()).abs().amax()

    objective = ModuleObjective(module, loss, batched=batched)
    x = candidates(objective)
    W, b, gain, shift = x[:, :12].reshape(-1, 4, 3), x[:, 12:16], x[:, 16:20], x[:, 20:]
    y = np.einsum("nij,kj->nki", W, inputs().numpy()) + b[:, None]
    y = (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + 1e-5)
    expected = np.abs(y * gain[:, None] + shift[:, None]).max(axis=(1, 2))
    np.testing.assert_allclose(objective(x), expected, rtol=1e-12)
    assert_same(module, before)


def test_further_arguments_reach_the_loss():
    objective = ModuleObjective(Dense(), lambda model, data, p: (model(data).abs() ** p).mean())
    x = candidates(objective)
    np.testing.assert_array_equal(
        objective(x, inputs(), 2), ModuleObjective(objective.module, mean_square)(x)
    )
    result = fmnes.minimize(
        objective,
        objective.x0,
        0.3,
        method="cr-fm-nes",
        args=(inputs(), 1),
        maxiter=5,
        vectorized=True,
        rng=1,
    )
    assert result.fun == pytest.approx(objective(result.x, inputs(), 1), rel=1e-13)


def test_the_search_itself_may_run_in_pytorch():
    objective = ModuleObjective(Dense(), mean_square)
    options = {"method": "cr-fm-nes", "maxiter": 10, "vectorized": True, "rng": 1}
    here = fmnes.minimize(objective, objective.x0, 0.3, **options)
    there = fmnes.minimize(objective, torch.tensor(objective.x0), 0.3, **options)
    assert isinstance(there.x, torch.Tensor)
    assert there.fun == pytest.approx(here.fun, rel=1e-9)
    assert mean_square(objective.load(there.x)).item() == pytest.approx(there.fun, rel=1e-13)


def test_workers_give_the_values_of_a_loop():
    objective = ModuleObjective(Dense(), mean_square)
    runs = [
        fmnes.minimize(objective, objective.x0, 0.3, maxiter=3, workers=workers, rng=1)
        for workers in (None, 2)
    ]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


def test_it_can_be_pickled():
    objective = ModuleObjective(Dense(), mean_square)
    x = candidates(objective)
    again = pickle.loads(pickle.dumps(objective))
    np.testing.assert_array_equal(again(x), objective(x))
    assert again.module is not objective.module


def test_what_vmap_does_not_take_says_what_to_do():
    def branches(model):
        value = model(inputs()).mean()
        return value if value.item() > 0 else -value

    module = Dense()
    x = candidates(ModuleObjective(module, mean_square))
    with pytest.raises(RuntimeError, match=r"^batched: .* batched=False") as info:
        ModuleObjective(module, branches)(x)
    assert "vmap" in str(info.value.__cause__)
    values = ModuleObjective(module, branches, batched=False)(x)
    plain = ModuleObjective(module, lambda model: model(inputs()).mean().abs())
    np.testing.assert_allclose(values, plain(x), rtol=1e-13)


def dense(loss=mean_square, **settings):
    return ModuleObjective(Dense(), loss, **settings)


@pytest.mark.parametrize(
    ("make", "error", "name", "came"),
    [
        (lambda: ModuleObjective(3, mean_square), TypeError, "module", "3"),
        (lambda: dense(3), TypeError, "loss", "3"),
        (lambda: dense(parameters=["weight"]), ValueError, "parameters", "'weight'"),
        (lambda: dense(parameters=[]), ValueError, "parameters", "none"),
        (lambda: dense(batched="no"), TypeError, "batched", "'no'"),
        (lambda: dense(chunk_size=0), ValueError, "chunk_size", "0"),
        (lambda: dense()(np.zeros(3)), ValueError, "x", r"\(3,\)"),
        (lambda: dense().load(np.zeros((2, 21))), ValueError, "x", r"\(2, 21\)"),
        (lambda: dense(lambda model: model(inputs()))(np.zeros((2, 21))), TypeError, "loss", "5"),
        (lambda: dense(lambda model: model(inputs()))(np.zeros(21)), TypeError, "loss", "5"),
        (lambda: dense(lambda model: None)(np.zeros(21)), TypeError, "loss", "None"),
    ],
)
def test_errors_name_the_argument(make, error, name, came):
    with pytest.raises(error, match=f"^{name}: expected .*, got .*{came}"):
        make()


def test_a_module_without_trained_parameters_is_refused():
    with pytest.raises(ValueError, match=r"^parameters: "):
        ModuleObjective(Dense().requires_grad_(False), mean_square)


def test_the_examples_of_the_docstring():
    done = doctest.testmod(integration)
    assert done.attempted >= 8
    assert done.failed == 0


def test_without_pytorch_it_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import fmnes.integrations.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'fmnes[torch]'" in done.stderr


# --- Candidates written into the module ---


def search(objective, **options):
    options = {"method": "cr-fm-nes", "rng": 1, **options}
    return fmnes.Optimizer(objective.x0, 0.1 * objective.scales, **options)


def test_evaluate_gives_the_values_of_the_candidates_and_leaves_the_mean():
    objective = ModuleObjective(Dense(), mean_square)
    opt = search(objective)
    for _ in range(2):
        expected = objective(opt.ask())
        values = objective.evaluate(opt)
        np.testing.assert_allclose(values, expected, rtol=1e-12)
        np.testing.assert_array_equal(
            ModuleObjective(objective.module, mean_square).x0, opt.result.mean
        )
        opt.tell(values)


def test_groups_scale_and_freeze():
    objective = ModuleObjective(Dense(), mean_square, groups={"first.bias": None, "*.bias": 0.5})
    assert objective.scales.tolist() == [1.0] * 16 + [0.5]
    before = state_of(objective.module)
    opt = search(objective)
    opt.tell(objective.evaluate(opt))
    opt.write_candidate(0, objective.tensors)
    after = objective.module.state_dict()
    assert torch.equal(after["first.bias"], before["first.bias"])
    assert not torch.equal(after["last.bias"], before["last.bias"])


def test_the_parameters_as_a_tensor_of_the_module():
    """In 32 bits at least, for a search on the device; made anew from what the module has."""
    module = Dense().float()
    objective = ModuleObjective(module, mean_square)
    assert objective.vector.dtype == torch.float32
    np.testing.assert_array_equal(objective.vector.numpy(), objective.x0)
    module.last.bias.data += 1
    assert objective.vector[-1] == module.last.bias.item()
    assert objective.x0[-1] == module.last.bias.item()
    assert ModuleObjective(Dense().bfloat16(), mean_square).vector.dtype == torch.float32
    assert ModuleObjective(Dense().double(), mean_square).vector.dtype == torch.float64


class Tied(torch.nn.Module):
    """One weight under two names, and a buffer that every call changes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.second(self.first(x))


def test_tied_weights_are_one_variable_and_buffers_are_restored():
    module = Tied()
    objective = ModuleObjective(
        module, lambda model: model(torch.ones(1, 2)).abs().sum() + model.calls
    )
    assert objective.x0.shape == (8,)
    opt = search(objective)
    values = objective.evaluate(opt)
    assert torch.equal(module.first.weight, module.second.weight)
    assert module.calls == 0
    expected = [
        ((x[:4].reshape(2, 2) @ (x[:4].reshape(2, 2) @ np.ones(2) + x[4:6])) + x[6:])
        for x in opt.ask()
    ]
    np.testing.assert_allclose(values, [np.abs(e).sum() + 1 for e in expected], rtol=1e-4)


def test_an_error_in_the_loss_leaves_the_search_and_the_mean():
    """Such as out of memory: the same generation can be evaluated again."""
    module, fails = Dense(), [True]

    def loss(model):
        if fails[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return mean_square(model)

    objective = ModuleObjective(module, loss)
    opt, before = search(objective), state_of(module)
    x = opt.ask()
    with pytest.raises(torch.OutOfMemoryError):
        objective.evaluate(opt)
    assert_same(module, before)
    fails[0] = False
    np.testing.assert_allclose(objective.evaluate(opt), objective(x), rtol=1e-12)


COMPILER = pytest.mark.skipif(shutil.which("c++") is None, reason="Inductor needs a C++ compiler")


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=COMPILER)])
def test_a_compiled_module(backend):
    """The compiled code reads the parameters anew for each candidate."""
    module = torch.compile(Dense(), backend=backend)
    objective = ModuleObjective(module, mean_square)
    opt = search(objective)
    expected = ModuleObjective(module._orig_mod, mean_square)(opt.ask())
    np.testing.assert_allclose(objective.evaluate(opt), expected, rtol=1e-12)


def test_parameters_on_several_devices_are_refused_in_calls():
    """The device "meta" stands for a second one."""
    module = Dense()
    module.last.to("meta")
    objective = ModuleObjective(module, mean_square)
    with pytest.raises(ValueError, match=r"module: expected .* one device .*'cpu', 'meta'"):
        objective(np.zeros(21))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: make test-gpu")
def test_parameters_on_several_devices_are_written():
    """The first layer on the CPU, the second on a GPU."""
    module = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 4), "b": torch.nn.Linear(4, 1).cuda()})

    def loss(model):
        return model["b"](model["a"](torch.ones(2, 3)).cuda()).square().sum()

    objective = ModuleObjective(module, loss)
    opt = search(objective)
    values = objective.evaluate(opt)
    x = opt.ask()[3]
    opt.write_candidate(3, objective.tensors)
    np.testing.assert_allclose(objective.x0, x, rtol=1e-6)
    with torch.no_grad():
        assert values[3] == float(loss(module))


def test_parameters_that_share_memory():
    """Weights of one RNN may lie in one piece of memory, but not in the same place."""
    module, whole = torch.nn.Module(), torch.zeros(6)
    module.one, module.other = (torch.nn.Parameter(whole[i : i + 3]) for i in (0, 3))
    assert ModuleObjective(module, mean_square).x0.size == 6
    module.third = torch.nn.Parameter(whole[2:4])
    with pytest.raises(ValueError, match="memory of their own, got one and third, which share it"):
        ModuleObjective(module, mean_square)


def test_modules_and_groups_that_are_refused(tmp_path):
    torch.distributed.init_process_group(
        "gloo", init_method=(tmp_path / "group").as_uri(), rank=0, world_size=1
    )
    try:
        wrapped = torch.nn.parallel.DistributedDataParallel(Dense())
        with pytest.raises(TypeError, match=r"module: .* DistributedDataParallel.*module\.module"):
            ModuleObjective(wrapped, mean_square)
        for module in (torch.compile(wrapped), torch.nn.Sequential(wrapped)):
            with pytest.raises(TypeError, match=r"module\.\w+ is one"):
                ModuleObjective(module, mean_square)
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        sharded = torch.distributed.tensor.distribute_tensor(torch.zeros(10), mesh)
        opt = fmnes.Optimizer(np.zeros(10), 1.0, rng=1)
        with pytest.raises(TypeError, match=r"target: .* whole tensors, got \[0\], a DTensor"):
            opt.write_candidate(0, [sharded])
        split = type("FullyShardedDataParallel", (torch.nn.Module,), {})()
        with pytest.raises(TypeError, match=r"target: .* FullyShardedDataParallel has split"):
            opt.write_candidate(0, split)
        with pytest.raises(TypeError, match=r"without FullyShardedDataParallel, which has split"):
            ModuleObjective(split, mean_square)
    finally:
        torch.distributed.destroy_process_group()
    with pytest.raises(TypeError, match=r"without DataParallel, which copies"):
        ModuleObjective(torch.nn.DataParallel(Dense()), mean_square)
    with pytest.raises(ValueError, match=r"groups: expected patterns for names among .* .head"):
        ModuleObjective(Dense(), mean_square, groups={"head.*": 2.0})
    with pytest.raises(ValueError, match=r"groups.*bias"):
        ModuleObjective(Dense(), mean_square, groups={"*.bias": 0.0})
