# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squares_kernel(src, dst, n, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src + row * n + at, mask=at < n, other=0.0)
    tl.atomic_add(dst + row, tl.sum(v * v, axis=0) * scale)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, n = x.shape[0], x[0].numel()
        y = torch.full((rows,), 0.0, device=x.device, dtype=x.dtype)
        squares_kernel[(rows, triton.cdiv(n, 4096))](x, y, n, 1.0 / n, BLOCK=4096)
        return y.sqrt_()
