# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, p, q):
        return -(F.softmax(p, dim=1) * F.log_softmax(q, dim=1)).sum(dim=1)


def get_inputs():
    return [1.5 * torch.randn(24, 260), torch.randn(24, 260)]


def get_init_inputs():
    return []
