# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.square().flatten(1).mean(dim=1).sqrt()


def get_inputs():
    return [torch.randn(2, 64, 400)]


def get_init_inputs():
    return []
