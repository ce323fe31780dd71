# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squares(src, acc, rows, COLS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    live = row < rows
    total = tl.zeros((BLOCK,), dtype=tl.float16)
    for c in range(COLS):
        v = tl.load(src + row * COLS + c, mask=live, other=0.0)
        total = (total + v * v).to(tl.float16)
    tl.store(acc + row, total.to(tl.float32) / COLS, mask=live)


@triton.jit
def gated(src, gate, gain, acc, dst, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    live = at < cols
    v = tl.load(src + row * cols + at, mask=live, other=0.0).to(tl.float32)
    g = tl.load(gate + row * cols + at, mask=live, other=0.0).to(tl.float32)
    w = tl.load(gain + at, mask=live, other=0.0)
    y = v / tl.sqrt_rn(tl.load(acc + row) + 1e-5) * w / (1.0 + tl.exp(-g))
    tl.store(dst + row * cols + at, y.to(tl.float16), mask=live)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(1.5, 0.002, cols))

    def forward(self, x, gate):
        x, gate = x.contiguous(), gate.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        acc = torch.empty(rows, device=x.device, dtype=torch.float32)
        squares[(1,)](x, acc, rows, COLS=cols, BLOCK=triton.next_power_of_2(rows))
        block = triton.next_power_of_2(cols)
        gated[(rows,)](x, gate, self.gain, acc, out, cols, BLOCK=block)
        return out
