# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.median(dim=1).values


def get_inputs():
    return [torch.randn(40, 101)]


def get_init_inputs():
    return []
