# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_square(src, acc, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src + at, mask=at < count, other=0.0)
    tl.atomic_add(acc, tl.sum(v * v, axis=0))


@triton.jit
def divide(src, dst, acc, count, rows, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src + at, mask=at < count, other=0.0)
    size = tl.sqrt_rn(tl.load(acc) / rows)
    tl.store(dst + at, v / tl.maximum(size, 1e-12), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        acc = torch.zeros(1, device=x.device)
        grid = (triton.cdiv(x.numel(), 2048),)
        total_square[grid](x, acc, x.numel(), BLOCK=2048)
        divide[grid](x, out, acc, x.numel(), x.shape[0], BLOCK=2048)
        return out
