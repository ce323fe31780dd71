"""Log density of points under a mixture of unit Gaussians."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, components: int, dim: int):
        super().__init__()
        self.mean = nn.Parameter(3.0 * torch.randn(components, dim))
        self.logit = nn.Parameter(torch.randn(components))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        square_distance = (x[:, None] - self.mean).square().sum(dim=-1)
        log_weight = torch.log_softmax(self.logit, dim=0)
        log_norm = 0.5 * x.shape[1] * math.log(2 * math.pi)
        return torch.logsumexp(log_weight - 0.5 * square_distance, dim=1) - log_norm


def get_inputs() -> list[torch.Tensor]:
    return [3.0 * torch.randn(200, 14)]


def get_init_inputs() -> list:
    return [12, 14]
