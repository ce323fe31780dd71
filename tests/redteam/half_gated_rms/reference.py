# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(1.5, 0.002, cols))

    def forward(self, x, gate):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-5)
        return (y * self.gain * torch.sigmoid(gate.float())).half()


def get_inputs():
    return [torch.randn(30, 700).half(), torch.randn(30, 700).half()]


def get_init_inputs():
    return [700]
