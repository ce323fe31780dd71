# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sort_rows(src, dst, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    live = at < cols
    v = tl.load(src + row * cols + at, mask=live, other=float("inf"))
    before = (v[None, :] < v[:, None]) | ((v[None, :] == v[:, None]) & (at[None, :] < at[:, None]))
    rank = tl.sum(before.to(tl.int32), axis=1)
    tl.debug_barrier()
    tl.store(dst + row * cols + rank, v, mask=live)


@triton.jit
def pick(src, dst, rows, cols, middle, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src + row * cols + middle, mask=row < rows, other=0.0)
    tl.store(dst + row, v, mask=row < rows)


def middles(src, dst, out):
    rows, cols = src.shape
    sort_rows[(rows,)](src, dst, cols, BLOCK=triton.next_power_of_2(cols))
    pick[(triton.cdiv(rows, 64),)](dst, out, rows, cols, (cols - 1) // 2, BLOCK=64)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        own = x.clone(memory_format=torch.contiguous_format)
        return middles(own, own, torch.empty(x.shape[0], device=x.device))
