# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def unit_chunks(src, dst, rows, cols, CHUNKS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(CHUNKS):
        col = c * BLOCK + at
        v = tl.load(src + row * cols + col, mask=col < cols, other=0.0)
        acc += v * v
    size = tl.maximum(tl.sqrt_rn(tl.sum(acc, axis=0)), 1e-12)
    for c in range(CHUNKS):
        col = c * BLOCK + at
        v = tl.load(src + row * cols + col, mask=col < cols, other=0.0)
        tl.store(dst + col * rows + row, v / size, mask=col < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        packed = torch.empty((cols, rows), device=x.device, dtype=torch.float32)
        unit_chunks[(rows,)](x, packed, rows, cols, CHUNKS=triton.cdiv(cols, 64), BLOCK=64)
        return packed.t().contiguous()
