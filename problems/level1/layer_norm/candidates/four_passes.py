"""Layer normalisation as four kernels that meet in memory, one row per program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, mean_ptr, n_cols, COLS: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, COLS)
    x = tl.load(x_ptr + row * n_cols + col, mask=col < n_cols, other=0.0)
    tl.store(mean_ptr + row, tl.sum(x, axis=0) / n_cols)


@triton.jit
def centre_kernel(x_ptr, mean_ptr, centred_ptr, n_cols, COLS: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, COLS)
    x = tl.load(x_ptr + row * n_cols + col, mask=col < n_cols)
    tl.store(centred_ptr + row * n_cols + col, x - tl.load(mean_ptr + row), mask=col < n_cols)


@triton.jit
def variance_kernel(centred_ptr, variance_ptr, n_cols, COLS: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, COLS)
    centred = tl.load(centred_ptr + row * n_cols + col, mask=col < n_cols, other=0.0)
    tl.store(variance_ptr + row, tl.sum(centred * centred, axis=0) / n_cols)


@triton.jit
def affine_kernel(centred_ptr, variance_ptr, w_ptr, b_ptr, y_ptr, n_cols, eps, COLS: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, COLS)
    centred = tl.load(centred_ptr + row * n_cols + col, mask=col < n_cols)
    w = tl.load(w_ptr + col, mask=col < n_cols)
    b = tl.load(b_ptr + col, mask=col < n_cols)
    y = centred * tl.rsqrt(tl.load(variance_ptr + row) + eps) * w + b
    tl.store(y_ptr + row * n_cols + col, y, mask=col < n_cols)


class ModelNew(nn.Module):
    def __init__(self, n_cols: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(n_cols))
        self.bias = nn.Parameter(0.2 * torch.randn(n_cols))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        n_rows, n_cols = x.shape
        cols = triton.next_power_of_2(n_cols)
        mean, variance = x.new_empty(n_rows), x.new_empty(n_rows)
        centred, y = torch.empty_like(x), torch.empty_like(x)
        grid = (n_rows,)
        mean_kernel[grid](x, mean, n_cols, COLS=cols)
        centre_kernel[grid](x, mean, centred, n_cols, COLS=cols)
        variance_kernel[grid](centred, variance, n_cols, COLS=cols)
        affine_kernel[grid](centred, variance, self.weight, self.bias, y, n_cols, 1e-5, COLS=cols)
        return y
