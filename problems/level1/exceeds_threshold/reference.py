"""Mark the elements whose magnitude exceeds the threshold of their column."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, threshold: torch.Tensor) -> torch.Tensor:
        return x.abs() > threshold


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(90, 410), 2.0 * torch.rand(410)]


def get_init_inputs() -> list:
    return []
