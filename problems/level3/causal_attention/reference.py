"""One head of causal self-attention with its projections."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width: int, dim: int):
        super().__init__()
        self.dim = dim
        self.qkv = nn.Linear(width, 3 * dim)
        self.out = nn.Linear(dim, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [batch, length, width]"""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        score = q @ k.transpose(1, 2) * self.dim**-0.5
        later = torch.ones_like(score, dtype=torch.bool).triu(1)
        return self.out(torch.softmax(score.masked_fill(later, float("-inf")), dim=-1) @ v)


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(2, 50, 72)]


def get_init_inputs() -> list:
    return [72, 32]
