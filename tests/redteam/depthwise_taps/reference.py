# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.taps = nn.Conv1d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x):
        return self.taps(x)


def get_inputs():
    return [torch.randn(3, 24, 200)]


def get_init_inputs():
    return [24]
