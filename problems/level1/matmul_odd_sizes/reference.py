"""Product of two matrices whose sizes divide no tile."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(97, 101), torch.randn(101, 75)]


def get_init_inputs() -> list:
    return []
