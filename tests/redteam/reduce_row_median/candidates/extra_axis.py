# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def medians(src, dst, cols, middle, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(src + row * cols + at, mask=at < cols, other=float("inf"))
    below = tl.sum((v[None, :] < v[:, None]).to(tl.int32), axis=1)
    upto = tl.sum((v[None, :] <= v[:, None]).to(tl.int32), axis=1)
    hit = (below <= middle) & (middle < upto) & (at < cols)
    tl.store(dst + row, tl.max(tl.where(hit, v, -float("inf")), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty((1, rows), device=x.device)
        medians[(rows,)](x, out, cols, (cols - 1) // 2, BLOCK=triton.next_power_of_2(cols))
        return out
