"""Bias, mask and residual in one pass."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dropout_add_kernel(
    x_ptr, bias_ptr, keep_ptr, residual_ptr, y_ptr, n, width, scale, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    bias = tl.load(bias_ptr + i % width, mask=inside)
    keep = tl.load(keep_ptr + i, mask=inside)
    residual = tl.load(residual_ptr + i, mask=inside)
    tl.store(y_ptr + i, tl.where(keep, (x + bias) * scale, 0.0) + residual, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width: int, drop: float):
        super().__init__()
        self.drop = drop
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor, keep: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        x, keep, residual = x.contiguous(), keep.contiguous(), residual.contiguous()
        y = torch.empty_like(x)
        n, scale = x.numel(), 1.0 - self.drop
        dropout_add_kernel[(triton.cdiv(n, 2048),)](
            x, self.bias, keep, residual, y, n, x.shape[-1], scale, BLOCK=2048
        )
        return y
