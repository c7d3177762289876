"""Compile every kernel for an H200 without having one, and print the names of those that fail.

The engine runs on CPU tensors with stand-ins for the kernels, which compile instead of launching.
"""

import sys
import types

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import fmnes
from fmnes import engines
from fmnes.draws import triton_draws
from fmnes.engines import triton_kernels

TYPES = {
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int64: "*i64",
    torch.bfloat16: "*bf16",
}
TARGET = GPUTarget("cuda", 90, 32)
METHODS = (
    fmnes.CRFMNES(),
    fmnes.CRFMNES(variant="paper", store_draws=False),
    fmnes.Auto(),
    fmnes.Auto(axes=1),
)
compiled = {}


class StandIn:
    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return self.launch

    def launch(self, *args, enable_fp_fusion, num_warps=4):
        kinds, constants = {}, {}
        for place, (parameter, value) in enumerate(zip(self.kernel.params, args, strict=True)):
            if isinstance(value, torch.Tensor):
                kinds[parameter.name] = TYPES[value.dtype]
            elif parameter.is_constexpr or value == 1:
                kinds[parameter.name], constants[place,] = "constexpr", value
            else:
                kinds[parameter.name] = "i32"
        name = self.kernel.fn.__name__
        key = name, str(kinds), str(constants)
        if key not in compiled:
            source = ASTSource(self.kernel, signature=kinds, constexprs=constants)
            options = {"enable_fp_fusion": enable_fp_fusion, "num_warps": num_warps}
            try:
                triton.compile(source, target=TARGET, options=options)
                compiled[key] = name, None
            except Exception as error:  # noqa: BLE001 (the other kernels are compiled too)
                compiled[key] = name, error


class Kernels:
    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        found = getattr(self.module, name)
        if isinstance(found, types.ModuleType):
            return Kernels(found)
        return StandIn(found) if isinstance(found, triton.runtime.jit.JITFunction) else found


def main():
    sys.modules["fmnes.engines"].triton_kernels = Kernels(triton_kernels)
    triton_draws._fill = StandIn(triton_draws._fill)
    engines.ENGINES = (
        *(row._replace(devices=None) for row in engines.ENGINES if row.name == "triton"),
        *engines.ENGINES,
    )
    for dtype in (torch.float32, torch.float64):
        x0 = torch.linspace(1, 2, 100, dtype=dtype)
        triton_draws.normals(triton_draws.words_on(x0, (1, 2, 3)), 0, 4, x0)
        for method in METHODS:
            opt = fmnes.Optimizer(x0, 1.0, rng=1, method=method)
            opt.ask()
            opt.tell(np.arange(opt.popsize, dtype=float))
            opt.write_candidate(0, [torch.zeros(100, dtype=torch.bfloat16)])
    failed = [f"{name}: {error}" for name, error in compiled.values() if error is not None]
    print(len(compiled), "kernels;", "failed:", *(failed or ["none"]))


if __name__ == "__main__":
    main()
