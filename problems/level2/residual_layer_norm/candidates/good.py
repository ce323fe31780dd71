"""Residual sum and its layer normalisation from one read of both inputs."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_norm_kernel(
    stream_ptr,
    branch_ptr,
    w_ptr,
    b_ptr,
    sum_ptr,
    norm_ptr,
    n_rows,
    width,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    inside = (row < n_rows) & (col < width)
    at = row * width + col
    x = tl.load(stream_ptr + at, mask=inside, other=0.0)
    x += tl.load(branch_ptr + at, mask=inside, other=0.0)
    tl.store(sum_ptr + at, x, mask=inside)
    centred = tl.where(inside, x - tl.sum(x, axis=1)[:, None] / width, 0.0)
    variance = tl.sum(centred * centred, axis=1)[:, None] / width
    w = tl.load(w_ptr + col, mask=col < width)
    b = tl.load(b_ptr + col, mask=col < width)
    tl.store(norm_ptr + at, centred * tl.rsqrt(variance + 1e-5) * w + b, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(width))
        self.bias = nn.Parameter(0.2 * torch.randn(width))

    def forward(
        self, stream: torch.Tensor, branch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        stream, branch = stream.contiguous(), branch.contiguous()
        width = stream.shape[-1]
        n_rows = stream.numel() // width
        total, norm = torch.empty_like(stream), torch.empty_like(stream)
        add_norm_kernel[(triton.cdiv(n_rows, 8),)](
            stream,
            branch,
            self.weight,
            self.bias,
            total,
            norm,
            n_rows,
            width,
            ROWS=8,
            COLS=triton.next_power_of_2(width),
        )
        return total, norm
