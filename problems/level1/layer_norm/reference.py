"""Layer normalisation with scale and shift, of inputs so small that epsilon matters."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, n_cols: int):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(n_cols))
        self.bias = nn.Parameter(0.2 * torch.randn(n_cols))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps=1e-5)


def get_inputs() -> list[torch.Tensor]:
    return [0.02 + 0.01 * torch.randn(34, 500)]


def get_init_inputs() -> list:
    return [500]
