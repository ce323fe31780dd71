"""Transpose of a matrix, laid out anew."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.t().contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(250, 190)]


def get_init_inputs() -> list:
    return []
