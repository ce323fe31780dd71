"""Gaussian kernel as a product over coordinates, with the matrix kept in memory between them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill_ones_kernel(k_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(k_ptr + i, tl.full((BLOCK,), 1.0, dtype=tl.float32), mask=i < size)


@triton.jit
def multiply_kernel(x_ptr, y_ptr, k_ptr, M, N, dim, d, gamma, TILE: tl.constexpr):
    m = tl.arange(0, TILE)[:, None]
    n = tl.arange(0, TILE)[None, :]
    inside = (m < M) & (n < N)
    x = tl.load(x_ptr + m * dim + d, mask=m < M)
    y = tl.load(y_ptr + n * dim + d, mask=n < N)
    k = tl.load(k_ptr + m * N + n, mask=inside)
    tl.store(k_ptr + m * N + n, k * tl.exp(-gamma * (x - y) * (x - y)), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, gamma: float):
        super().__init__()
        self.gamma = gamma

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        (M, dim), N = x.shape, y.shape[0]
        k = x.new_empty((M, N))
        fill_ones_kernel[(triton.cdiv(M * N, 4096),)](k, M * N, BLOCK=4096)
        tile = triton.next_power_of_2(max(M, N))
        for d in range(dim):
            multiply_kernel[(1,)](x, y, k, M, N, dim, d, self.gamma, TILE=tile)
        return k
