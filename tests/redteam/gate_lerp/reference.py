# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, g):
        return torch.lerp(b, a, torch.sigmoid(g))


def get_inputs():
    return [torch.randn(36, 480), torch.randn(36, 480), 2.0 * torch.randn(36, 480)]


def get_init_inputs():
    return []
