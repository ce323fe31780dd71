# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_tap_kernel(x, weight, y, n, length, channels, tap, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    near = at % length + tap - 1
    inside = live & (near >= 0) & (near < length)
    w = tl.load(weight + at // length % channels * 3 + tap, mask=live, other=0.0)
    v = tl.load(x + at + tap - 1, mask=inside, other=0.0)
    tl.store(y + at, tl.load(y + at, mask=live, other=0.0) + w * v, mask=live)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.taps = nn.Conv1d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x):
        x = x.contiguous()
        conv = self.taps
        y = torch.zeros_like(x).add_(conv.bias.detach()[:, None])
        n, length, channels = x.numel(), x.shape[2], x.shape[1]
        grid = (triton.cdiv(n, 4096),)
        for tap in range(3):
            add_tap_kernel[grid](x, conv.weight, y, n, length, channels, tap, BLOCK=4096)
        return y
