"""Add a branch to the residual stream and normalise; both the sum and its norm go on."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(width))
        self.bias = nn.Parameter(0.2 * torch.randn(width))

    def forward(
        self, stream: torch.Tensor, branch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        stream = stream + branch
        return stream, F.layer_norm(stream, self.weight.shape, self.weight, self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 25, 384), torch.randn(3, 25, 384)]


def get_init_inputs() -> list:
    return [384]
