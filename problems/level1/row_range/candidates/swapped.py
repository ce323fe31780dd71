"""Both ends of every row from one read of it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_range_kernel(
    x_ptr, low_ptr, high_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, COLS)[None, :]
    # Past the end a row repeats its last element, which changes neither end of it.
    col = tl.minimum(col, n_cols - 1)
    inside = row < n_rows
    x = tl.load(x_ptr + row[:, None] * n_cols + col, mask=inside[:, None], other=0.0)
    has_nan = tl.max((x != x).to(tl.int32), axis=1) > 0
    low = tl.where(has_nan, float("nan"), tl.min(x, axis=1))
    high = tl.where(has_nan, float("nan"), tl.max(x, axis=1))
    tl.store(low_ptr + row, low, mask=inside)
    tl.store(high_ptr + row, high, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.contiguous()
        n_rows, n_cols = x.shape
        low, high = x.new_empty(n_rows), x.new_empty(n_rows)
        row_range_kernel[(triton.cdiv(n_rows, 8),)](
            x, low, high, n_rows, n_cols, ROWS=8, COLS=triton.next_power_of_2(n_cols)
        )
        return high, low
