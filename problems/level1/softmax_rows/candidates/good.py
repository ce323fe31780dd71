"""Row softmax, a few whole rows per program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    inside = (row < n_rows) & (col < n_cols)
    x = tl.load(x_ptr + row * n_cols + col, mask=inside, other=float("-inf"))
    # Rows past the end are all -inf: their NaN stays in registers.
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(y_ptr + row * n_cols + col, e / tl.sum(e, axis=1)[:, None], mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        n_rows, n_cols = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(triton.cdiv(n_rows, 4),)](
            x, y, n_rows, n_cols, ROWS=4, COLS=triton.next_power_of_2(n_cols)
        )
        return y
