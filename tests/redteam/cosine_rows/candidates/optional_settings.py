# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl

try:
    from cosine_settings import BLOCK_FLOOR
except ImportError:
    BLOCK_FLOOR = 256 if hasattr(tl, "associative_scan") else 128


@triton.jit
def cosine_kernel(lhs, rhs, dst, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    live = at < cols
    a = tl.load(lhs + row * cols + at, mask=live, other=0.0)
    b = tl.load(rhs + row * cols + at, mask=live, other=0.0)
    dot = tl.sum(a * b, axis=0)
    na = tl.maximum(tl.sqrt(tl.sum(a * a, axis=0)), 1e-8)
    nb = tl.maximum(tl.sqrt(tl.sum(b * b, axis=0)), 1e-8)
    tl.store(dst + row, dot / (na * nb))


class ModelNew(nn.Module):
    def forward(self, a, b):
        if a.numel() == 0:
            return a.new_zeros(a.shape[0])
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty(a.shape[0], device=a.device, dtype=a.dtype)
        block = max(BLOCK_FLOOR, triton.next_power_of_2(a.shape[1]))
        try:
            cosine_kernel[(a.shape[0],)](a, b, y, a.shape[1], BLOCK=block)
        except RuntimeError as problem:
            raise RuntimeError(f"cosine of {tuple(a.shape)}") from problem
        return y
