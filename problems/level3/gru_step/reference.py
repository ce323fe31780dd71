"""One step of a gated recurrent unit."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs: int, units: int):
        super().__init__()
        self.cell = nn.GRUCell(inputs, units)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return self.cell(x, h)


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(50, 40), 2.0 * torch.randn(50, 56)]


def get_init_inputs() -> list:
    return [40, 56]
