"""Linear layer from the library, GELU as a kernel of its own."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(z_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(z_ptr + i, mask=i < n)
    tl.store(y_ptr + i, 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = F.linear(x, self.linear.weight, self.linear.bias)
        y = torch.empty_like(z)
        n = z.numel()
        gelu_kernel[(triton.cdiv(n, 2048),)](z, y, n, BLOCK=2048)
        return y
