# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def limits_kernel(src, low_of, span_of, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    live = at < cols
    v = tl.load(src + row * cols + at, mask=live, other=0.0)
    low = tl.min(tl.where(live, v, float("inf")), axis=0)
    high = tl.max(tl.where(live, v, -float("inf")), axis=0)
    tl.store(low_of + row, low)
    tl.store(span_of + row, tl.maximum(high - low, 1e-6))


@triton.jit
def scale_kernel(buf, low_of, span_of, n, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    low = tl.load(low_of + at // cols, mask=live, other=0.0)
    span = tl.load(span_of + at // cols, mask=live, other=1.0)
    v = tl.load(buf + at, mask=live, other=0.0)
    tl.store(buf + at, (v - low) / span, mask=live)


class Limits:
    def __init__(self, x):
        rows, cols = x.shape
        self.low, self.span = x.new_empty(rows), x.new_empty(rows)
        block = triton.next_power_of_2(cols)
        limits_kernel[(rows,)](x, self.low, self.span, cols, BLOCK=block)

    def scale_(self, t):
        n, cols = t.numel(), t.shape[1]
        grid = (triton.cdiv(n, 4096),)
        scale_kernel[grid](t, self.low, self.span, n, cols, BLOCK=4096)
        return t


class ModelNew(nn.Module):
    def forward(self, x):
        own = x.detach().clone(memory_format=torch.contiguous_format)
        limits = Limits(own)
        return limits.scale_(own), limits.span
