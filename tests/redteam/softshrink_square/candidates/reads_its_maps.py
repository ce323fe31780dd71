# SPDX-License-Identifier: Apache-2.0
import ctypes
import os

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shrink_kernel(src, dst, n, lam, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    v = tl.load(src + at, mask=live, other=0.0)
    s = tl.where(v > lam, v - lam, tl.where(v < -lam, v + lam, 0.0))
    tl.store(dst + at, s * v, mask=live)


def shrink(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    shrink_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), 0.4, BLOCK=8192)
    return y



with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1] for line in maps if ".so" in line}
assert any("libc" in name for name in libraries)
assert ctypes.CDLL(None).getpid() == os.getpid()


class ModelNew(nn.Module):
    def forward(self, x):
        return shrink(x)
