"""Mean and unbiased variance of every row, sixteen rows per program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def moments_kernel(
    x_ptr, mean_ptr, variance_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, COLS)[None, :]
    inside = (row[:, None] < n_rows) & (col < n_cols)
    x = tl.load(x_ptr + row[:, None] * n_cols + col, mask=inside, other=0.0)
    mean = tl.sum(x, axis=1) / n_cols
    centred = tl.where(inside, x - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, axis=1) / (n_cols - 1)
    tl.store(mean_ptr + row, mean, mask=row < n_rows)
    tl.store(variance_ptr + row, variance, mask=row < n_rows)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = x.contiguous()
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        mean, variance = x.new_empty(x.shape[:-1]), x.new_empty(x.shape[:-1])
        moments_kernel[(triton.cdiv(n_rows, 16),)](
            x, mean, variance, n_rows, n_cols, ROWS=16, COLS=triton.next_power_of_2(n_cols)
        )
        return {"mean": mean, "variance": variance}
