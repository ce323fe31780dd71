# SPDX-License-Identifier: Apache-2.0
import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mish_gain_kernel(src, gain, dst, n, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    v = tl.load(src + at, mask=live, other=0.0)
    g = tl.load(gain + at % cols, mask=live, other=0.0)
    e = tl.exp(tl.minimum(v, 20.0))
    num = e * (e + 2.0)
    tl.store(dst + at, g * v * (num / (num + 2.0)), mask=live)


def into_new_output(method):
    @functools.wraps(method)
    def wrapper(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        method(self, x, y)
        return y

    return wrapper


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(cols) + 0.5)

    @into_new_output
    def forward(self, x, y):
        n = x.numel()
        grid = (triton.cdiv(n, 4096),)
        mish_gain_kernel[grid](x, self.gain, y, n, x.shape[-1], BLOCK=4096)
