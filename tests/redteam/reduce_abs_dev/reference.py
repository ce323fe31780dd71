# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return (x - x.mean(dim=1, keepdim=True)).abs().mean(dim=1)


def get_inputs():
    return [torch.rand(24, 2400)]


def get_init_inputs():
    return []
