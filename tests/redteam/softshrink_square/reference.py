# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.softshrink(x, 0.4) * x


def get_inputs():
    return [torch.randn(60, 900)]


def get_init_inputs():
    return []
