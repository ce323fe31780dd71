# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        norms = a.norm(dim=1).clamp_min(1e-8) * b.norm(dim=1).clamp_min(1e-8)
        return (a * b).sum(dim=1) / norms


def get_inputs():
    a = torch.randn(64, 384)
    return [a, 0.4 * a + torch.randn(64, 384)]


def get_init_inputs():
    return []
