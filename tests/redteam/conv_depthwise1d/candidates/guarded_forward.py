# SPDX-License-Identifier: Apache-2.0
import threading

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def taps(src, weight, bias, dst, channels, steps, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    channel = plane % channels
    at = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(TAPS):
        pos = at + k - TAPS // 2
        v = tl.load(src + plane * steps + pos, mask=(pos >= 0) & (pos < steps), other=0.0)
        w = tl.load(weight + channel * TAPS + k)
        acc += v * w
    acc += tl.load(bias + channel)
    tl.store(dst + plane * steps + at, acc, mask=at < steps)


def run(x, conv):
    x = x.contiguous()
    batch, channels, steps = x.shape
    out = torch.empty_like(x)
    taps[(batch * channels,)](
        x, conv.weight, conv.bias, out, channels, steps, TAPS=5,
        BLOCK=triton.next_power_of_2(steps),
    )
    return out


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 5, padding=2, groups=channels)
        self.guard = threading.Lock()
        self.widest = 0

    def note(self, x):
        self.widest = max(self.widest, x.shape[-1])

    @torch.no_grad()
    def forward(self, x):
        with self.guard:
            helper = threading.Thread(target=self.note, args=(x,))
            helper.start()
            out = run(x, self.conv)
            helper.join()
        return out
