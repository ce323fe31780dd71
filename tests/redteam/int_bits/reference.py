# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        count = torch.zeros_like(x)
        for i in range(32):
            count = count + ((x >> i) & 1)
        return count.sum(dim=1), count % 2 == 1


def get_inputs():
    return [torch.randint(-(2**31), 2**31 - 1, (16, 300), dtype=torch.int32)]


def get_init_inputs():
    return []
