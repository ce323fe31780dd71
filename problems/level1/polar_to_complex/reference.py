"""Complex numbers from magnitude and phase."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, magnitude: torch.Tensor, phase: torch.Tensor) -> torch.Tensor:
        return torch.polar(magnitude, phase)


def get_inputs() -> list[torch.Tensor]:
    return [0.1 + torch.rand(50, 301), 3.0 * torch.randn(50, 301)]


def get_init_inputs() -> list:
    return []
