"""Image patches to tokens, with a class token and learnt positions."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, image: int, patch: int, channels: int, width: int):
        super().__init__()
        self.project = nn.Conv2d(channels, width, kernel_size=patch, stride=patch)
        self.class_token = nn.Parameter(torch.randn(width))
        self.position = nn.Parameter(0.5 * torch.randn(1 + (image // patch) ** 2, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        patches = self.project(x).flatten(2).transpose(1, 2)
        first = self.class_token.expand(x.shape[0], 1, -1)
        return torch.cat([first, patches], dim=1) + self.position


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(3, 3, 40, 40)]


def get_init_inputs() -> list:
    return [40, 8, 3, 72]
