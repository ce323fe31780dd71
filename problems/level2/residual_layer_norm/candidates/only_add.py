"""Residual sum as a kernel, layer normalisation from the library."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n)
    b = tl.load(b_ptr + i, mask=i < n)
    tl.store(sum_ptr + i, a + b, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(width))
        self.bias = nn.Parameter(0.2 * torch.randn(width))

    def forward(
        self, stream: torch.Tensor, branch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        stream, branch = stream.contiguous(), branch.contiguous()
        total = torch.empty_like(stream)
        n = stream.numel()
        add_kernel[(triton.cdiv(n, 4096),)](stream, branch, total, n, BLOCK=4096)
        return total, F.layer_norm(total, self.weight.shape, self.weight, self.bias)
