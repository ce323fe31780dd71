"""Mean cross-entropy of logits against class indices."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, target)


def get_inputs() -> list[torch.Tensor]:
    temperature = 0.5 + 4.0 * torch.rand(())
    return [temperature * torch.randn(100, 470), torch.randint(0, 470, (100,))]


def get_init_inputs() -> list:
    return []
