# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, 3, stride=1, padding=1)


def get_inputs():
    return [torch.rand(2, 3, 40, 44)]


def get_init_inputs():
    return []
