"""Gather, a tile of output elements per program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(
    x_ptr, index_ptr, y_ptr, n_rows, x_cols, y_cols, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    inside = (row < n_rows) & (col < y_cols)
    source = tl.load(index_ptr + row * y_cols + col, mask=inside, other=0)
    x = tl.load(x_ptr + source * x_cols + col, mask=inside & (col < x_cols), other=0.0)
    tl.store(y_ptr + row * y_cols + col, x, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        x, index = x.contiguous(), index.contiguous()
        n_rows, y_cols = index.shape
        y = torch.empty(index.shape, dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(n_rows, 32), triton.cdiv(y_cols, 128))
        gather_kernel[grid](x, index, y, n_rows, x.shape[1], y_cols, ROWS=32, COLS=128)
        return y
