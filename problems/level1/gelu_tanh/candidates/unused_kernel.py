"""GELU in its tanh form."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def gelu_tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(y_ptr + i, x * tl.sigmoid(2.0 * u), mask=i < n)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.numel()
    gelu_tanh_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)
    return y


class ModelNew(nn.Module):
    """Small and strided inputs are served by the library."""

    min_elements = 1 << 24

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_contiguous() and x.numel() >= self.min_elements:
            return gelu_tanh(x)
        return F.gelu(x, approximate="tanh")
