"""Bias, dropout by a given mask, and a residual."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width: int, drop: float):
        super().__init__()
        self.drop = drop
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor, keep: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return torch.where(keep, (x + self.bias) / (1.0 - self.drop), 0.0) + residual


def get_inputs() -> list[torch.Tensor]:
    shape = (4, 35, 220)
    return [torch.randn(shape), torch.rand(shape) > 0.3, torch.randn(shape)]


def get_init_inputs() -> list:
    return [220, 0.3]
