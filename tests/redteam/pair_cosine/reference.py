# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, a, b):
        return F.normalize(a, dim=1) @ F.normalize(b, dim=1).t()


def get_inputs():
    return [torch.randn(50, 80), torch.randn(70, 80)]


def get_init_inputs():
    return []
