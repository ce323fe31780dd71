# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 4096}), triton.Config({"BLOCK": 8192})], key=["n"]
)
@triton.jit
def silu_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    v = tl.load(src + at, mask=live, other=0.0)
    tl.store(dst + at, v * tl.sigmoid(v), mask=live)


def silu_into(x, y, n):
    silu_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return silu_into(x, torch.empty_like(x), x.numel())
