"""GELU in its tanh form."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(61, 1000)]


def get_init_inputs() -> list:
    return []
