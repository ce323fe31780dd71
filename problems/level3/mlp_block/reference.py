"""Pre-norm MLP block with a residual connection."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def get_inputs() -> list[torch.Tensor]:
    return [1.0 + 2.0 * torch.randn(3, 30, 60)]


def get_init_inputs() -> list:
    return [60, 200]
