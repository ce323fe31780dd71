# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, 2) - F.avg_pool2d(x, 2)


def get_inputs():
    return [torch.randn(4, 3, 32, 40)]


def get_init_inputs():
    return []
