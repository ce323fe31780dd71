# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softshrink_kernel(src, dst, n, lam, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src + at, mask=at < n, other=0.0)
    s = tl.where(v > lam, v - lam, tl.where(v < -lam, v + lam, 0.0))
    tl.store(dst + at, s, mask=at < n)


@triton.jit
def product_kernel(lhs, rhs, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(lhs + at, mask=at < n, other=0.0)
    b = tl.load(rhs + at, mask=at < n, other=0.0)
    tl.store(dst + at, a * b, mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.work = {}

    def workspace(self, x):
        key = (x.numel(), x.device)
        if key not in self.work:
            self.work[key] = torch.empty(x.numel(), dtype=x.dtype, device=x.device)
        return self.work[key]

    def forward(self, x):
        x = x.contiguous()
        n = x.numel()
        half = self.workspace(x)
        y = torch.empty_like(x)
        grid = (triton.cdiv(n, 8192),)
        softshrink_kernel[grid](x, half, n, 0.4, BLOCK=8192)
        product_kernel[grid](half, x, y, n, BLOCK=8192)
        return y
