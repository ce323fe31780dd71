"""SwiGLU of a packed half precision tensor."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x_ptr, y_ptr, n_rows, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    inside = (row < n_rows) & (col < width)
    at = row * 2 * width + col
    gate = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + at + width, mask=inside, other=0.0).to(tl.float32)
    y = gate * tl.sigmoid(gate) * up
    tl.store(y_ptr + row * width + col, y.to(tl.float16), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        width = x.shape[-1] // 2
        n_rows = x.numel() // (2 * width)
        y = x.new_empty((*x.shape[:-1], width))
        swiglu_kernel[(triton.cdiv(n_rows, 16),)](
            x, y, n_rows, width, ROWS=16, COLS=triton.next_power_of_2(width)
        )
        return y
