"""Convolution from the library, ReLU as a kernel of its own."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.where(x < 0.0, 0.0, x), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.conv2d(x, self.conv.weight, self.conv.bias).contiguous()
        y = torch.empty_like(h)
        n = h.numel()
        relu_kernel[(triton.cdiv(n, 4096),)](h, y, n, BLOCK=4096)
        return y
