# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def abs_dev(src, dst, cols, CHUNKS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(CHUNKS):
        col = c * BLOCK + at
        acc += tl.load(src + row * cols + col, mask=col < cols, other=0.0)
    mid = tl.sum(acc, axis=0) / cols
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(CHUNKS):
        col = c * BLOCK + at
        v = tl.load(src + row * cols + col, mask=col < cols, other=0.0)
        acc += tl.where(col < cols, tl.abs(v - mid), 0.0)
    tl.store(dst + row, tl.sum(acc, axis=0) / cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        abs_dev[(rows,)](x, out, cols, CHUNKS=triton.cdiv(cols, 512), BLOCK=512)
        return out
