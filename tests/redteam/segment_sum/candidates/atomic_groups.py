# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(src, group, dst, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, COLS)
    live = (row < rows)[:, None] & (col < cols)[None, :]
    to = tl.load(group + row, mask=row < rows, other=0)
    v = tl.load(src + row[:, None] * cols + col[None, :], mask=live, other=0.0)
    tl.atomic_add(dst + to[:, None] * cols + col[None, :], v, mask=live)


class ModelNew(nn.Module):
    def __init__(self, rows, count):
        super().__init__()
        self.count = count
        self.register_buffer("group", torch.arange(rows) * 7 % count)

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        y = torch.zeros(self.count, cols, device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(cols)
        scatter_kernel[(triton.cdiv(rows, 32),)](x, self.group, y, rows, cols, ROWS=32, COLS=block)
        return y
