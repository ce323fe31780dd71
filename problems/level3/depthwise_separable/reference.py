"""Depthwise 3x3 convolution, then pointwise convolution with ReLU6."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.depthwise = nn.Conv2d(in_channels, in_channels, 3, padding=1, groups=in_channels)
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu6(self.pointwise(self.depthwise(x)))


def get_inputs() -> list[torch.Tensor]:
    return [5.0 * torch.randn(2, 24, 15, 17)]


def get_init_inputs() -> list:
    return [24, 36]
