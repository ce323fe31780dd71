# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.flip(1).cumsum(1).flip(1)


def get_inputs():
    return [torch.randn(24, 330)]


def get_init_inputs():
    return []
