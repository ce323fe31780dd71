# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def epilogue_kernel(buf, bias, n, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    v = tl.load(buf + at, mask=live, other=0.0)
    v += tl.load(bias + at % cols, mask=live, other=0.0)
    gate = tl.minimum(tl.maximum(v + 3.0, 0.0), 6.0)
    tl.store(buf + at, v * gate / 6.0, mask=live)


class ModelNew(nn.Module):
    def __init__(self, width, out_width):
        super().__init__()
        self.lin = nn.Linear(width, out_width)

    def forward(self, x):
        z = torch.mm(x, self.lin.weight.detach().t())
        grid = (triton.cdiv(z.numel(), 4096),)
        epilogue_kernel[grid](z, self.lin.bias, z.numel(), z.shape[1], BLOCK=4096)
        return z
