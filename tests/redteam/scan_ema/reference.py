# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        state = x[:, 0]
        states = [state]
        for t in range(1, x.shape[1]):
            state = self.rate * x[:, t] + (1.0 - self.rate) * state
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs():
    return [torch.randn(48, 90)]


def get_init_inputs():
    return [0.4]
