"""Group normalisation with a scale and shift per channel, followed by SiLU."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(channels))
        self.bias = nn.Parameter(0.3 * torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(F.group_norm(x, self.groups, self.weight, self.bias))


def get_inputs() -> list[torch.Tensor]:
    return [1.0 + 2.0 * torch.randn(2, 32, 13, 11)]


def get_init_inputs() -> list:
    return [32, 8]
