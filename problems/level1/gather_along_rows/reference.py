"""Pick elements of every row by index."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.gather(x, 1, index)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(200, 160), torch.randint(0, 160, (200, 190))]


def get_init_inputs() -> list:
    return []
