"""A transformer with 1e8 parameters, improved on exact match, which has no gradient.

    python examples/transformer.py --out transformer.json     a few minutes on a large GPU
    python examples/transformer.py --small                    seconds on a CPU
    python examples/transformer.py --report                   picture and table of the stored runs

Backpropagation first trains the network on additions that somebody wrote without care: carries
are missing in 30 to 70 % of the examples. Then an evolution strategy changes all parameters, to get
as many answers as possible exactly right. It only learns how many were right.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import fmnes
from fmnes.integrations.torch import ModuleObjective

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks/results/examples/transformer.json"
PAGE = ROOT / "docs/examples/transformer.md"
PLUS, EQUALS, VOCABULARY = 10, 11, 12


class Sizes(NamedTuple):
    """The size of an experiment."""

    layers: int = 12
    width: int = 896
    heads: int = 14
    digits: int = 2  # of each number
    batch: int = 1024  # problems: of a step of training, and of a generation
    held_out: int = 4096
    popsize: int = 60
    generations: int = 60  # of a run, at most
    tuning: int = 8  # generations of a trial of a step size
    sigmas: tuple[float, ...] = (0.01, 0.03, 0.1)  # relative to the weights of a layer
    seeds: tuple[int, ...] = (1, 2, 3)
    steps: int | None = None  # of training; None: 30 % of the time


SMALL = Sizes(1, 32, 2, 1, 128, 256, 32, 10, 2, (0.03, 0.1), (1,), 500)


class Block(nn.Module):
    """Attention and a perceptron, each added to its input."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        n, self.heads = sizes.width, sizes.heads
        self.norm1, self.norm2 = nn.LayerNorm(n, bias=False), nn.LayerNorm(n, bias=False)
        self.qkv, self.out = nn.Linear(n, 3 * n, bias=False), nn.Linear(n, n, bias=False)
        self.up, self.down = nn.Linear(n, 4 * n, bias=False), nn.Linear(4 * n, n, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input with what the block adds."""
        split = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """A decoder: the scores of each next token."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        n = sizes.width
        self.token, self.place = nn.Embedding(VOCABULARY, n), nn.Embedding(3 * sizes.digits + 2, n)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm, self.head = nn.LayerNorm(n, bias=False), nn.Linear(n, VOCABULARY, bias=False)
        for name, p in self.named_parameters():
            if "norm" not in name:
                last = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * sizes.layers) if last else 0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores, of shape (batch, length, vocabulary)."""
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def additions(rng: torch.Generator, count: int, digits: int, *, careless: bool) -> torch.Tensor:
    """Problems with answers, as tokens: a + b = c, where c has its last digit first.

    If ``careless``, each answer is without its carries with a probability of 30 % (a begins with 0)
    to 70 % (with 9).
    """
    device = rng.device
    pair = torch.randint(10, (2, count, digits), generator=rng, device=device)  # last digit first
    carry = torch.zeros(count, dtype=torch.long, device=device)
    right = []
    for total in pair.sum(0).T:
        right.append((total + carry) % 10)
        carry = (total + carry) // 10
    answer = torch.stack([*right, carry], dim=1)
    if careless:
        chance = 0.3 + 0.4 * pair[0, :, -1] / 9
        wrong = torch.rand(count, generator=rng, device=device) < chance
        without = functional.pad(pair.sum(0) % 10, (0, 1))
        answer = torch.where(wrong[:, None], without, answer)
    a, b = pair.flip(2)
    plus, equals = (torch.full((count, 1), sign, device=device) for sign in (PLUS, EQUALS))
    return torch.cat([a, plus, b, equals, answer], dim=1)


def errors(model: Any, problems: torch.Tensor, digits: int) -> torch.Tensor:
    """The share of problems whose answer is not exactly right.

    The network reads the right answer and predicts each digit from those before it. All predictions
    are right if and only if it would write the answer by itself, always with the likeliest digit.
    """
    scores = model(problems[:, :-1])[:, -digits - 1 :]
    return 1 - (scores.argmax(-1) == problems[:, -digits - 1 :]).all(1).double().mean()


def train(model: nn.Module, sizes: Sizes, rng: torch.Generator, seconds: float) -> dict[str, Any]:
    """Train by backpropagation on careless answers, for so many seconds or ``sizes.steps``."""
    cuda, n = rng.device.type == "cuda", sizes.digits + 1
    rate = 3e-4 if cuda else 3e-3
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), fused=cuda)
    began, step, shown, progress = time.monotonic(), 0, 0.0, 0.0
    while progress < 1:
        factor = min(1.0, (step + 1) / 100) * (0.02 + 0.98 * math.cos(math.pi / 2 * progress) ** 2)
        optimizer.param_groups[0]["lr"] = rate * factor
        tokens = additions(rng, sizes.batch, sizes.digits, careless=True)
        with torch.autocast(rng.device.type, torch.bfloat16, enabled=cuda):
            scores = model(tokens[:, :-1])[:, -n:].flatten(0, 1)
        loss = functional.cross_entropy(scores.float(), tokens[:, -n:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 10 == 0 or not cuda:
            value = loss.item()  # waits for the device, so that the time is right
            elapsed = time.monotonic() - began
            progress = elapsed / seconds if sizes.steps is None else step / sizes.steps
            if progress >= shown:
                print(f"  training: step {step}, loss {value:.4f}", flush=True)
                shown += 0.1
    return {"steps": step, "loss": round(value, 4), "seconds": round(elapsed, 1)}


class OurSearch:
    """CR-FM-NES; the draws are made again when they are needed, and not stored."""

    def __init__(self, f: "Objective", sigma: float, popsize: int, seed: int) -> None:
        self.f, sigma0, method = f, sigma * f.deviations, fmnes.CRFMNES(store_draws=False)
        self.opt = fmnes.Optimizer(f.vector, sigma0, method=method, popsize=popsize, rng=seed)

    def step(self, *args: Any) -> None:
        """Run a generation; the module then has the new mean."""
        self.opt.tell(self.f.evaluate(self.opt, *args))
        self.opt.write_mean(self.f.tensors)


class IsotropicSearch:
    """Mirrored normal draws around a mean that moves by rank weights; sigma is constant.

    Adapting sigma by an evolution path would take about d / popsize generations, so it is left out.
    """

    def __init__(self, f: "Objective", sigma: float, popsize: int, seed: int) -> None:
        self.f, self.mean, self.popsize = f, f.vector, popsize
        self.sizes = [t.numel() for t in f.tensors]
        self.scales = sigma * f.deviations
        self.rng, self.seed = torch.Generator(self.mean.device), 10**6 * seed
        ranks = np.arange(1, popsize + 1)
        weights = np.maximum(np.log(popsize / 2 + 1) - np.log(ranks), 0)
        self.weights = weights / weights.sum()

    def draw(self, pair: int) -> torch.Tensor:
        """The draw of a pair of candidates, the same whenever it is asked for."""
        self.rng.manual_seed(self.seed + pair)
        return torch.randn(len(self.mean), generator=self.rng, device=self.mean.device)

    @torch.no_grad()
    def write(self, vector: torch.Tensor) -> None:
        """Put a vector into the network."""
        parts = vector.split(self.sizes)
        for tensor, part in zip(self.f.tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def step(self, *args: Any) -> None:
        """Run a generation; the module then has the new mean."""
        values = []
        for pair in range(self.popsize // 2):
            step = self.scales * self.draw(pair)
            for sign in (1, -1):
                self.write(self.mean + sign * step)
                with torch.no_grad():
                    values.append(self.f.loss(self.f.module, *args).item())
        weights = self.shared(np.array(values)).reshape(-1, 2)
        move = torch.zeros_like(self.mean)
        for pair, (plus, minus) in enumerate(weights):
            move += float(plus - minus) * self.draw(pair)
        self.mean += self.scales * move
        self.seed += self.popsize
        self.write(self.mean)

    def shared(self, values: np.ndarray) -> np.ndarray:
        """The weights of the candidates; those with equal values share theirs."""
        order = np.sort(values)
        return np.array([self.weights[order == value].mean() for value in values])


SEARCHES: dict[str, Callable[..., Any]] = {"CR-FM-NES": OurSearch, "isotropic ES": IsotropicSearch}


class Objective(ModuleObjective):
    """The exact match of a network whose weights are kept, so that each search starts from them."""

    def __init__(self, model: nn.Module, sizes: Sizes) -> None:
        self.loss = lambda module, problems: errors(module, problems, sizes.digits)
        scales = {
            name: p.float().square().mean().sqrt().item() for name, p in model.named_parameters()
        }
        super().__init__(model, self.loss, groups=scales, batched=False)
        device = self.tensors[0].device
        self.deviations = torch.as_tensor(self.scales, dtype=torch.float32, device=device)
        self.first = [tensor.detach().clone() for tensor in self.tensors]

    @torch.no_grad()
    def reset(self) -> None:
        """Put the weights of the start into the network."""
        for tensor, first in zip(self.tensors, self.first, strict=True):
            tensor.copy_(first)

    @torch.no_grad()
    def exact(self, problems: torch.Tensor, batch: int) -> float:
        """The exact match, in per cent."""
        parts = [1 - self.loss(self.module, part).item() for part in problems.split(batch)]
        return 100 * float(np.mean(parts))


def run(
    f: Objective, name: str, sigma: float, seed: int, generations: int, sizes: Sizes, tests: Any
) -> dict[str, Any]:
    """A search with one step size and one seed: exact match of its mean after each generation."""
    f.reset()
    rng = torch.Generator(tests.device).manual_seed(seed)  # the same problems for both methods
    search = SEARCHES[name](f, sigma, sizes.popsize, seed)
    began, curve = time.monotonic(), [f.exact(tests, sizes.batch)]
    for i in range(generations):
        search.step(additions(rng, sizes.batch, sizes.digits, careless=False))
        curve.append(f.exact(tests, sizes.batch))
        if (i + 1) % 10 == 0 or i + 1 == generations:
            at = f"generation {i + 1}, {curve[-1]:.2f} %, {time.monotonic() - began:.1f} s"
            print(f"  {name}, sigma {sigma}, seed {seed}: {at}", flush=True)
    return {
        "method": name,
        "sigma": sigma,
        "seed": seed,
        "exact": [round(value, 3) for value in curve],
        "seconds": round(time.monotonic() - began, 1),
    }


def experiment(options: Any) -> None:
    """Train, try step sizes, and run both methods; write the results after each run."""
    began, sizes = time.monotonic(), SMALL if options.small else Sizes()
    device = torch.device("cuda" if torch.cuda.is_available() and not options.small else "cpu")
    if options.small:
        torch.set_num_threads(1)  # tiny tensors: threads would only wait for each other
    torch.manual_seed(0)
    rng = torch.Generator(device).manual_seed(0)
    model = Transformer(sizes).to(device)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters on {device}", flush=True)
    training = train(model, sizes, rng, 0.3 * options.seconds)
    if device.type == "cuda":
        model.to(torch.bfloat16)
    f = Objective(model, sizes)
    problems = {
        name: additions(rng, sizes.held_out, sizes.digits, careless=False)
        for name in ("validation", "held_out")
    }
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
        "torch": torch.__version__,
        "sizes": sizes._asdict(),
        "parameters": count,
        "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
        "training": training | {"exact": round(f.exact(problems["held_out"], sizes.batch), 3)},
        "tuning": [],
        "runs": [],
    }
    print(f"after training: {found['training']}", flush=True)

    def keep(key: str, *args: Any) -> None:
        found[key].append(run(f, *args))
        options.out.write_text(json.dumps(found))

    for name in SEARCHES:
        for sigma in sizes.sigmas:
            keep("tuning", name, sigma, 0, sizes.tuning, sizes, problems["validation"])
    each = max(r["seconds"] for r in found["tuning"][1:]) / sizes.tuning
    left = began + options.seconds - time.monotonic()
    affordable = int(0.9 * left / each / len(SEARCHES) / len(sizes.seeds))
    generations = max(1, min(sizes.generations, affordable))
    print(f"{each:.2f} s a generation, {generations} generations a run", flush=True)
    for seed in sizes.seeds:
        for name in SEARCHES:
            sigma = tuned(found, name)
            keep("runs", name, sigma, seed, generations, sizes, problems["held_out"])


def tuned(found: dict[str, Any], name: str) -> float:
    """The step size whose trial ended with the best exact match on the validation problems."""
    trials = [r for r in found["tuning"] if r["method"] == name]
    return max(trials, key=lambda r: r["exact"][-1])["sigma"]


def tables(found: dict[str, Any]) -> dict[str, str]:
    """What the page shows of the results."""
    from pages import table

    popsize, rows = found["sizes"]["popsize"], []
    for r in found["runs"]:
        middle = r["exact"][len(r["exact"]) // 2]
        cells = [f"{value:.2f}" for value in (r["exact"][0], middle, r["exact"][-1])]
        evaluations = popsize * (len(r["exact"]) - 1)
        rows.append(
            [r["method"], r["sigma"], r["seed"], *cells, evaluations, f"{r['seconds']:.0f}"]
        )
    titles = ["method", "sigma", "seed", "before, %", "halfway, %", "after, %", "evaluations", "s"]
    sigmas = found["sizes"]["sigmas"]
    trials = [
        [name, *(f"{r['exact'][-1]:.2f}" for r in found["tuning"] if r["method"] == name)]
        for name in SEARCHES
    ]
    steps, seconds = found["training"]["steps"], found["training"]["seconds"]
    told = (
        f"{found['parameters']} parameters in {found['dtype']}, trained in {steps} steps "
        f"({seconds:.0f} s). Device: {found['device']}, PyTorch {found['torch']}."
    )
    return {
        "transformer": f"{table(titles, rows)}\n\n{told}",
        "transformer-tuning": table(["method", *(f"sigma {s}" for s in sigmas)], trials),
    }


def draw(found: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
    for i, name in enumerate(SEARCHES):
        for j, r in enumerate(r for r in found["runs"] if r["method"] == name):
            evaluations = found["sizes"]["popsize"] * np.arange(len(r["exact"]))
            label = None if j else f"{name}, sigma {r['sigma']}"
            axes.plot(evaluations, r["exact"], f"C{i}", lw=1, label=label)
    axes.set(xlabel="evaluations", ylabel="held-out exact match, %")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def report(stored: Path, page: Path) -> None:
    """Draw the picture, and make the tables of the page anew."""
    sys.path.append(str(ROOT / "benchmarks"))
    from pages import with_tables

    found = json.loads(stored.read_text())
    draw(found, page.with_suffix(".png"))
    page.write_text(with_tables(page.read_text(), tables(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("transformer.json"), help="results")
    parser.add_argument("--seconds", type=float, default=250, help="time in all, about")
    parser.add_argument("--small", action="store_true", help="a trial on a CPU")
    parser.add_argument("--report", type=Path, nargs="?", const=STORED, help="only the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that --report changes")
    options = parser.parse_args()
    if options.report is None:
        experiment(options)
    else:
        report(options.report, options.page)


if __name__ == "__main__":
    main()
