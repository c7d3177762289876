"""The draws that Triton kernels make: the words of the other backends, and their normals."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from draws.common import KNOWN_ANSWERS, exact_normals, extreme_words
from fmnes import draws
from fmnes.draws import triton_draws
from gpu.conftest import DEVICE, GPU

pytestmark = pytest.mark.arrays
ADDRESS = {"seed": 0xFEDCBA9876543210, "stream": 2**20 - 1, "generation": 2**44 - 3}
MOST_ULPS = 2


@triton.jit
def _philox(counter, key, out, n: tl.constexpr):
    i = tl.arange(0, n)
    c0, c1 = tl.load(counter + i).to(tl.uint32), tl.load(counter + n + i).to(tl.uint32)
    c2, c3 = tl.load(counter + 2 * n + i).to(tl.uint32), tl.load(counter + 3 * n + i).to(tl.uint32)
    words = triton_draws.philox(tl.load(key).to(tl.uint64, bitcast=True), c0, c1, c2, c3)
    tl.store(out + i, words[0].to(tl.int64))
    tl.store(out + n + i, words[1].to(tl.int64))
    tl.store(out + 2 * n + i, words[2].to(tl.int64))
    tl.store(out + 3 * n + i, words[3].to(tl.int64))


@triton.jit
def _box_muller(words, out, n: tl.constexpr, DOUBLE: tl.constexpr):
    i = tl.arange(0, n)
    w0, w1 = tl.load(words + i).to(tl.uint32), tl.load(words + n + i).to(tl.uint32)
    w2, w3 = tl.load(words + 2 * n + i).to(tl.uint32), tl.load(words + 3 * n + i).to(tl.uint32)
    if DOUBLE:
        x, y = triton_draws.box_muller64(w0, w1, w2, w3)
    else:
        x, y = triton_draws.box_muller32(w0, w1, w2, w3)
    tl.store(out + i, x)
    tl.store(out + n + i, y)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_known_answers(counter, key, answer):
    seed = key[0] | key[1] << 32
    words = triton_draws.words_of(seed, 0, 0)[:1]
    columns = torch.tensor([[word] * 4 for word in counter], device=DEVICE)
    out = torch.zeros_like(columns)
    _philox[(1,)](columns, torch.tensor(words, device=DEVICE), out, 4)
    assert (out.cpu().numpy() % 2**32).T.tolist() == [list(answer)] * 4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_normals_of_extreme_words(dtype):
    """Against the exact normals: also where a radius is tiny or huge, and at every eighth turn."""
    words = extreme_words()
    n = triton.next_power_of_2(len(words))
    columns = np.zeros((4, n), np.int64)
    columns[:, : len(words)] = words.T
    out = torch.zeros((2, n), dtype=dtype, device=DEVICE)
    double = dtype == torch.float64
    on_device = torch.tensor(columns, device=DEVICE)
    _box_muller[(1,)](on_device, out, n, double, enable_fp_fusion=not double)
    found = out.cpu().numpy()[:, : len(words)].T
    exact = np.array([[float(normal) for normal in exact_normals(row)] for row in words])
    unit = np.spacing(np.abs(exact).astype(found.dtype)).astype(np.float64)
    errors = np.abs(found.astype(np.float64) - exact) / unit
    bad = np.argwhere((errors > MOST_ULPS) & (exact != 0))
    assert len(bad) == 0, [(words[i], found[i], exact[i]) for i, _ in bad[:3]]
    assert np.all(found[exact == 0] == 0)


@pytest.mark.parametrize("dim", [1, 15, 16, 17, 600])
def test_float64_normals_are_those_of_the_cpu(dim):
    like = torch.zeros(dim, dtype=torch.float64, device=DEVICE)
    words = triton_draws.words_on(like, tuple(ADDRESS.values()))
    found = triton_draws.normals(words, 5, 4, like).cpu().numpy()
    assert np.array_equal(found, draws.normals(**ADDRESS, first=5, last=9, dim=dim))


@pytest.mark.parametrize("start", [1, 8, 16, 37])
def test_coordinates_from_some_on(start):
    like = torch.zeros(20, dtype=torch.float64, device=DEVICE)
    words = triton_draws.words_on(like, tuple(ADDRESS.values()))
    found = triton_draws.normals(words, 5, 4, like, start).cpu().numpy()
    expected = draws.normals(**ADDRESS, first=5, last=9, dim=start + 20)
    assert np.array_equal(found, expected[:, start:])


def test_float32_normals_are_within_a_few_units_in_the_last_place():
    rows, dim = (64, 2**17) if GPU else (2, 2**11)
    like = torch.zeros(dim, device=DEVICE)
    words = triton_draws.words_on(like, tuple(ADDRESS.values()))
    found = triton_draws.normals(words, 0, rows, like).cpu().numpy()
    exact = draws.normals(**ADDRESS, first=0, last=rows, dim=dim)
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    errors = np.abs(found - exact) / unit
    assert np.max(errors) <= MOST_ULPS, np.quantile(errors, [0.5, 0.99, 0.9999, 1])
