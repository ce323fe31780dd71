"""Running sum in blocks of columns, each carrying the total of those before it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    carry = tl.zeros((ROWS, 1), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        inside = (row < n_rows) & (col < n_cols)
        x = tl.load(x_ptr + row * n_cols + col, mask=inside, other=0.0)
        tl.store(y_ptr + row * n_cols + col, carry + tl.cumsum(x, axis=1), mask=inside)
        carry += tl.sum(x, axis=1)[:, None]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        n_rows, n_cols = x.shape
        y = torch.empty_like(x)
        cumsum_kernel[(triton.cdiv(n_rows, 4),)](x, y, n_rows, n_cols, ROWS=4, BLOCK=512)
        return y
