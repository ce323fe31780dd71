# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sizes(src, sizes, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(src + row * cols + at, mask=at < cols, other=0.0, eviction_policy="evict_last")
    tl.store(sizes + row, tl.maximum(tl.sqrt_rn(tl.sum(v * v, axis=0)), 1e-12))


@triton.jit
def divide(src, dst, sizes, count, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < count
    v = tl.load(src + at, mask=live, other=0.0, eviction_policy="evict_first")
    size = tl.load(sizes + at // cols, mask=live, other=1.0)
    tl.store(dst + at, v / size, mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        sizes = torch.empty(rows, device=x.device)
        row_sizes[(rows,)](x, sizes, cols, BLOCK=triton.next_power_of_2(cols))
        grid = (triton.cdiv(x.numel(), 1024),)
        divide[grid](x, out, sizes, x.numel(), cols, BLOCK=1024)
        return out
