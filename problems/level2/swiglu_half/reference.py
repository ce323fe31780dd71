"""SwiGLU of a packed half precision tensor: the first half gates the second."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs() -> list[torch.Tensor]:
    return [(4.0 * torch.rand(5, 24, 600) - 2.0).half()]


def get_init_inputs() -> list:
    return []
