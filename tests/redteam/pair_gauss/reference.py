# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        gap = x[:, None, :] - x[None, :, :]
        return torch.exp(-0.5 * gap.square().sum(dim=2))


def get_inputs():
    return [torch.randn(56, 24)]


def get_init_inputs():
    return []
