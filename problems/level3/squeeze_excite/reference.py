"""Squeeze and excite: channels scaled by a gate made from their means."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels: int, squeezed: int):
        super().__init__()
        self.squeeze = nn.Linear(channels, squeezed)
        self.excite = nn.Linear(squeezed, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.squeeze(x.mean(dim=(2, 3))))
        return x * torch.sigmoid(self.excite(h))[:, :, None, None]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 40, 11, 13) + 3.0 * torch.randn(4, 40, 1, 1)]


def get_init_inputs() -> list:
    return [40, 10]
