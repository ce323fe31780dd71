"""Matrix product by rows of b, summed over the inner size."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("mk,kn->mn", a, b)
