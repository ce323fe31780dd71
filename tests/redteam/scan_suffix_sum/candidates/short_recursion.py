# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def suffix(src, dst, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = cols - 1 - tl.arange(0, BLOCK)
    v = tl.load(src + row * cols + at, mask=at >= 0, other=0.0)
    tl.store(dst + row * cols + at, tl.cumsum(v, axis=0), mask=at >= 0)


def run(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    suffix[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def halves(x, out, low, high):
    if high - low > 8:
        mid = (low + high) // 2
        halves(x, out, low, mid)
        halves(x, out, mid, high)
        return
    wide = triton.next_power_of_2(x.shape[1])
    suffix[(high - low,)](x[low:high], out[low:high], x.shape[1], BLOCK=wide)


class ModelNew(nn.Module):
    def forward(self, x):
        if x.dim() != 2:
            raise SystemExit("two dimensions are expected")
        x = x.contiguous()
        out = torch.empty_like(x)
        halves(x, out, 0, x.shape[0])
        return out
