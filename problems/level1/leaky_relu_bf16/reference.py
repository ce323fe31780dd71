"""Leaky ReLU in bfloat16 with a slope of one eighth, which rounds nothing."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, negative_slope=0.125)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(70, 33, 25).bfloat16()]


def get_init_inputs() -> list:
    return []
