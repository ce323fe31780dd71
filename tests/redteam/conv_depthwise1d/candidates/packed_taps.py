# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def taps(src, table, dst, channels, steps, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    channel = plane % channels
    at = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32) + tl.load(table + TAPS * channels + channel)
    for k in range(TAPS):
        pos = at + (TAPS - 1 - k) - TAPS // 2
        v = tl.load(src + plane * steps + pos, mask=(pos >= 0) & (pos < steps), other=0.0)
        acc += v * tl.load(table + (TAPS - 1 - k) * channels + channel)
    tl.store(dst + plane * steps + at, acc, mask=at < steps)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 5, padding=2, groups=channels)
        self.stamp = None
        self.table = None

    def packed(self):
        w, b = self.conv.weight, self.conv.bias
        stamp = (w.data_ptr(), w._version, b.data_ptr(), b._version)
        if stamp != self.stamp:
            rows = [w.detach()[:, 0, :].t(), b.detach()[None, :]]
            self.table = torch.cat(rows).float().contiguous()
            self.stamp = stamp
        return self.table

    def forward(self, x):
        x = x.contiguous()
        batch, channels, steps = x.shape
        out = torch.empty_like(x)
        block = triton.next_power_of_2(steps)
        grid = (batch * channels,)
        taps[grid](x, self.packed(), out, channels, steps, TAPS=5, BLOCK=block)
        return out
