"""Causal attention from the library, with the scores scaled and masked by one kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_mask_kernel(s_ptr, y_ptr, n, length, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    query, key = i // length % length, i % length
    s = tl.load(s_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.where(key <= query, s * scale, float("-inf")), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width: int, dim: int):
        super().__init__()
        self.dim = dim
        self.qkv = nn.Linear(width, 3 * dim)
        self.out = nn.Linear(dim, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        score = q @ k.transpose(1, 2)
        masked = torch.empty_like(score)
        n = score.numel()
        scale_mask_kernel[(triton.cdiv(n, 2048),)](
            score, masked, n, x.shape[1], self.dim**-0.5, BLOCK=2048
        )
        return self.out(torch.softmax(masked, dim=-1) @ v)
