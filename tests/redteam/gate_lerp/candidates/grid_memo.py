# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lerp_kernel(lhs, rhs, gate, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    a = tl.load(lhs + at, mask=live, other=0.0)
    b = tl.load(rhs + at, mask=live, other=0.0)
    g = tl.load(gate + at, mask=live, other=0.0)
    tl.store(dst + at, b + tl.sigmoid(g) * (a - b), mask=live)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def grid(self, t):
        key = (tuple(t.shape), str(t.device))
        if key not in self.known:
            self.known[key] = (triton.cdiv(t.numel(), 4096),)
        return self.known[key]

    def forward(self, *tensors):
        a, b, g = (t.contiguous() for t in tensors)
        y = torch.empty_like(a)
        lerp_kernel[self.grid(a)](a, b, g, y, a.numel(), BLOCK=4096)
        return y
