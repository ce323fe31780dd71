"""Root-mean-square normalisation, half in and out, single precision between."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr, w_ptr, y_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    inside = (row < n_rows) & (col < n_cols)
    x = tl.load(x_ptr + row * n_cols + col, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1)[:, None] / n_cols + eps)
    w = tl.load(w_ptr + col, mask=col < n_cols)
    tl.store(y_ptr + row * n_cols + col, (x * scale * w).to(tl.float16), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, n_cols: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(n_cols))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        y = torch.empty_like(x)
        rms_norm_kernel[(triton.cdiv(n_rows, 8),)](
            x, self.weight, y, n_rows, n_cols, 1e-6, ROWS=8, COLS=triton.next_power_of_2(n_cols)
        )
        return y
