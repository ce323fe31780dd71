# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(src, dst, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(src + row * cols + at, mask=at < cols, other=-float("inf"))
    top = tl.max(v, axis=0)
    tl.store(dst + row, top + tl.log(tl.sum(tl.exp(v - top), axis=0)))


@triton.jit
def sum_kernel(left, right, norm, dst, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    live = at < cols
    p = tl.load(left + row * cols + at, mask=live, other=0.0) - tl.load(norm + row)
    q = tl.load(right + row * cols + at, mask=live, other=0.0) - tl.load(norm + rows + row)
    tl.store(dst + row, -tl.sum(tl.where(live, tl.exp(p) * q, 0.0), axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = None

    def forward(self, p, q):
        p, q = p.contiguous(), q.contiguous()
        rows, cols = p.shape
        if self.norm is None or self.norm.shape[1] != rows or self.norm.device != p.device:
            self.norm = torch.empty(2, rows, device=p.device, dtype=p.dtype)
        block = triton.next_power_of_2(cols)
        for side, logits in zip(self.norm, (p, q)):
            norm_kernel[(rows,)](logits, side, cols, BLOCK=block)
        y = torch.empty(rows, device=p.device, dtype=p.dtype)
        sum_kernel[(rows,)](p, q, self.norm, y, rows, cols, BLOCK=block)
        return y
