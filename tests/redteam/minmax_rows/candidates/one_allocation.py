# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def minmax_kernel(src, dst, cols, pitch, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    live = at < cols
    v = tl.load(src + row * cols + at, mask=live, other=0.0)
    low = tl.min(tl.where(live, v, float("inf")), axis=0)
    high = tl.max(tl.where(live, v, -float("inf")), axis=0)
    span = tl.maximum(high - low, 1e-6)
    tl.store(dst + row * pitch + at, (v - low) / span, mask=live)
    tl.store(dst + row * pitch + cols, span)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        both = torch.empty(rows, cols + 1, device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(cols)
        minmax_kernel[(rows,)](x, both, cols, cols + 1, BLOCK=block)
        return both[:, :cols], both[:, cols]
