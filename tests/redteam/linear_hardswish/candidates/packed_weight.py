# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_hs_kernel(x, wt, bias, y, m, n, k, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for step in range(STEPS):
        ks = step * BLOCK + tl.arange(0, BLOCK)
        in_a = (rows[:, None] < m) & (ks[None, :] < k)
        in_b = (ks[:, None] < k) & (cols[None, :] < n)
        a = tl.load(x + rows[:, None] * k + ks[None, :], mask=in_a, other=0.0)
        b = tl.load(wt + ks[:, None] * n + cols[None, :], mask=in_b, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    acc += tl.load(bias + cols, mask=cols < n, other=0.0)[None, :]
    acc = acc * tl.minimum(tl.maximum(acc + 3.0, 0.0), 6.0) / 6.0
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(y + rows[:, None] * n + cols[None, :], acc, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width, out_width):
        super().__init__()
        self.lin = nn.Linear(width, out_width)
        self.packed = None
        self.packed_of = None

    def weight_by_column(self):
        w = self.lin.weight
        made_of = (w.data_ptr(), w._version, w.device)
        if self.packed_of != made_of:
            self.packed = w.detach().t().contiguous()
            self.packed_of = made_of
        return self.packed

    def forward(self, x):
        x = x.contiguous()
        m, k = x.shape
        n = self.lin.out_features
        y = torch.empty(m, n, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        wt = self.weight_by_column()
        linear_hs_kernel[grid](
            x, wt, self.lin.bias, y, m, n, k, STEPS=triton.cdiv(k, 32), BLOCK=32
        )
        return y
