"""MLP block from the library, residual addition as a kernel."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n)
    b = tl.load(b_ptr + i, mask=i < n)
    tl.store(y_ptr + i, a + b, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        branch = self.down(F.gelu(self.up(self.norm(x))))
        y = torch.empty_like(x)
        n = x.numel()
        add_kernel[(triton.cdiv(n, 2048),)](x, branch, y, n, BLOCK=2048)
        return y
