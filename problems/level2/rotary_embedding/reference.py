"""Rotary position embedding that pairs the first half of each head with the second."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, max_length: int, dim: int):
        super().__init__()
        frequency = 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        angle = torch.outer(torch.arange(max_length).float(), frequency)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [batch, length, heads, dim]"""
        length = x.shape[1]
        cos, sin = self.cos[:length, None], self.sin[:length, None]
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 45, 6, 48)]


def get_init_inputs() -> list:
    return [64, 48]
