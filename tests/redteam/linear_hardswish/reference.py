# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width, out_width):
        super().__init__()
        self.lin = nn.Linear(width, out_width)

    def forward(self, x):
        return F.hardswish(self.lin(x))


def get_inputs():
    return [2.0 * torch.randn(72, 96)]


def get_init_inputs():
    return [96, 160]
