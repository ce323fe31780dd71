# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def inverse_sizes(src, scratch, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(src + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(scratch + row, 1.0 / tl.sqrt_rn(tl.sum(v * v, axis=0) / cols + 1e-5))


@triton.jit
def apply(src, gate, gain, scratch, dst, count, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < count
    v = tl.load(src + at, mask=live, other=0.0).to(tl.float32)
    g = tl.load(gate + at, mask=live, other=0.0).to(tl.float32)
    w = tl.load(gain + at % cols, mask=live, other=0.0)
    s = tl.load(scratch + at // cols, mask=live, other=0.0)
    tl.store(dst + at, (v * s * w / (1.0 + tl.exp(-g))).to(tl.float16), mask=live)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(1.5, 0.002, cols))
        self.scratch = None

    def forward(self, x, gate):
        x, gate = x.contiguous(), gate.contiguous()
        rows, cols = x.shape
        if self.scratch is None or self.scratch.shape[0] != rows:
            self.scratch = torch.empty(rows, device=x.device, dtype=torch.float32)
        inverse_sizes[(rows,)](x, self.scratch, cols, BLOCK=triton.next_power_of_2(cols))
        out = torch.empty_like(x)
        n = x.numel()
        grid = (triton.cdiv(n, 2048),)
        apply[grid](x, gate, self.gain, self.scratch, out, n, cols, BLOCK=2048)
        return out
