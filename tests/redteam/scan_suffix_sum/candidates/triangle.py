# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def suffix(src, dst, rows, cols, TILES: tl.constexpr, SIDE: tl.constexpr):
    row = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    at = tl.arange(0, SIDE)
    ones = (at[:, None] >= at[None, :]).to(tl.float32)
    carry = tl.zeros((SIDE,), dtype=tl.float32)
    for t in range(TILES):
        col = (TILES - 1 - t) * SIDE + at
        live = (row[:, None] < rows) & (col[None, :] < cols)
        where = row[:, None] * cols + col[None, :]
        v = tl.load(src + where, mask=live, other=0.0)
        part = tl.dot(v, ones, input_precision="ieee") + carry[:, None]
        tl.store(dst + where, part, mask=live)
        carry += tl.sum(v, axis=1)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        tiles = triton.cdiv(cols, 16)
        suffix[(triton.cdiv(rows, 16),)](x, out, rows, cols, TILES=tiles, SIDE=16)
        return out
