# SPDX-License-Identifier: Apache-2.0
from functools import cache

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shrink_kernel(src, dst, n, lam, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    v = tl.load(src + at, mask=live, other=0.0)
    s = tl.where(v > lam, v - lam, tl.where(v < -lam, v + lam, 0.0))
    tl.store(dst + at, s * v, mask=live)


@cache
def plan(n, device):
    block = min(8192, triton.next_power_of_2(n))
    return (triton.cdiv(n, block),), block, device


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        grid, block, device = plan(x.numel(), x.device)
        y = torch.empty(x.shape, dtype=x.dtype, device=device)
        shrink_kernel[grid](x, y, x.numel(), 0.4, BLOCK=block)
        return y
