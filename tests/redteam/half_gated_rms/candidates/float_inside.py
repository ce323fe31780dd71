# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated(src, gate, gain, dst, cols, CHUNKS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(CHUNKS):
        col = c * BLOCK + at
        v = tl.load(src + row * cols + col, mask=col < cols, other=0.0).to(tl.float32)
        acc += v * v
    size = tl.sqrt_rn(tl.sum(acc, axis=0) / cols + 1e-5)
    for c in range(CHUNKS):
        col = c * BLOCK + at
        live = col < cols
        v = tl.load(src + row * cols + col, mask=live, other=0.0).to(tl.float32)
        g = tl.load(gate + row * cols + col, mask=live, other=0.0).to(tl.float32)
        w = tl.load(gain + col, mask=live, other=0.0)
        tl.store(dst + row * cols + col, (v / size * w * tl.sigmoid(g)).to(tl.float16), mask=live)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(1.5, 0.002, cols))

    def forward(self, x, gate):
        x, gate = x.contiguous(), gate.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        chunks = triton.cdiv(cols, 256)
        gated[(rows,)](x, gate, self.gain, out, cols, CHUNKS=chunks, BLOCK=256)
        return out
