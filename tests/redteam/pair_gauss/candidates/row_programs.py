# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gauss(src, dst, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    me = tl.program_id(0)
    row = tl.arange(0, ROWS)
    col = tl.arange(0, COLS)
    mine = tl.load(src + me * cols + col, mask=col < cols, other=0.0)
    live = (row[:, None] < rows) & (col[None, :] < cols)
    v = tl.load(src + row[:, None] * cols + col[None, :], mask=live, other=0.0)
    gap = v - mine[None, :]
    dist = tl.sum(tl.where(col[None, :] < cols, gap * gap, 0.0), axis=1)
    tl.store(dst + me * rows + row, tl.exp(-0.5 * dist), mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty((rows, rows), device=x.device, dtype=x.dtype)
        high, wide = triton.next_power_of_2(rows), triton.next_power_of_2(cols)
        gauss[(rows,)](x, out, rows, cols, ROWS=high, COLS=wide)
        return out
