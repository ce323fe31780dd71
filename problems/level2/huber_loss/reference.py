"""Mean Huber loss between a prediction and its target."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.huber_loss(prediction, target, delta=self.delta)


def get_inputs() -> list[torch.Tensor]:
    spread = 0.3 + 2.0 * torch.rand(())
    return [spread * torch.randn(90, 333), spread * torch.randn(90, 333)]


def get_init_inputs() -> list:
    return [0.7]
