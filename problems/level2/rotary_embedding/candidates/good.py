"""Rotary position embedding, a tile of heads at their positions per program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    y_ptr,
    n_rows,
    length,
    heads,
    half,
    ROWS: tl.constexpr,
    HALF: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    pair = tl.arange(0, HALF)[None, :]
    inside = (row < n_rows) & (pair < half)
    position = row // heads % length
    cos = tl.load(cos_ptr + position * half + pair, mask=inside)
    sin = tl.load(sin_ptr + position * half + pair, mask=inside)
    at = row * 2 * half + pair
    a = tl.load(x_ptr + at, mask=inside)
    b = tl.load(x_ptr + at + half, mask=inside)
    tl.store(y_ptr + at, a * cos - b * sin, mask=inside)
    tl.store(y_ptr + at + half, b * cos + a * sin, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, max_length: int, dim: int):
        super().__init__()
        frequency = 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        angle = torch.outer(torch.arange(max_length).float(), frequency)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        _, length, heads, dim = x.shape
        n_rows, half = x.numel() // dim, dim // 2
        y = torch.empty_like(x)
        rotate_kernel[(triton.cdiv(n_rows, 64),)](
            x,
            self.cos,
            self.sin,
            y,
            n_rows,
            length,
            heads,
            half,
            ROWS=64,
            HALF=triton.next_power_of_2(half),
        )
        return y
