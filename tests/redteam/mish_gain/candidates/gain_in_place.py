# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mish_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    v = tl.load(src + at, mask=live, other=0.0)
    e = tl.exp(tl.minimum(v, 20.0))
    num = e * (e + 2.0)
    tl.store(dst + at, v * (num / (num + 2.0)), mask=live)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(cols) + 0.5)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        mish_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)
        return y.mul_(self.gain.detach())
