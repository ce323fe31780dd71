# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cudnn_implicit_gemm(x, weight, bias, y, n, length, channels, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    place = at % length
    channel = at // length % channels
    acc = tl.load(bias + channel, mask=live, other=0.0)
    for tap in tl.static_range(3):
        near = place + tap - 1
        inside = live & (near >= 0) & (near < length)
        w = tl.load(weight + channel * 3 + tap, mask=live, other=0.0)
        acc += w * tl.load(x + at + tap - 1, mask=inside, other=0.0)
    tl.store(y + at, acc, mask=live)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.taps = nn.Conv1d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n, length, channels = x.numel(), x.shape[2], x.shape[1]
        cudnn_implicit_gemm[(triton.cdiv(n, 4096),)](
            x, self.taps.weight, self.taps.bias, y, n, length, channels, BLOCK=4096
        )
        return y
