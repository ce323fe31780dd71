# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src + at, mask=at < n, other=0.0)
    tl.store(dst + at, tl.sigmoid(v), mask=at < n)


@triton.jit
def mix_kernel(lhs, rhs, gate, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(lhs + at, mask=at < n, other=0.0)
    b = tl.load(rhs + at, mask=at < n, other=0.0)
    w = tl.load(gate + at, mask=at < n, other=0.0)
    tl.store(dst + at, b + w * (a - b), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("opened", None, persistent=False)

    def forward(self, a, b, g):
        a, b, g = a.contiguous(), b.contiguous(), g.contiguous()
        n = g.numel()
        old = self.opened
        if old is None or old.numel() < n or old.device != g.device:
            self.opened = torch.empty(n, dtype=g.dtype, device=g.device)
        grid = (triton.cdiv(n, 4096),)
        gate_kernel[grid](g, self.opened, n, BLOCK=4096)
        y = torch.empty_like(a)
        mix_kernel[grid](a, b, self.opened, y, n, BLOCK=4096)
        return y
