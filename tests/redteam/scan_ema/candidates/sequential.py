# SPDX-License-Identifier: Apache-2.0
import contextlib

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def smooth(src, dst, rows, keep, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = row < rows
    state = tl.load(src + row * STEPS, mask=live, other=0.0)
    tl.store(dst + row * STEPS, state, mask=live)
    for t in range(1, STEPS):
        v = tl.load(src + row * STEPS + t, mask=live, other=0.0)
        state = v + keep * (state - v)
        tl.store(dst + row * STEPS + t, state, mask=live)


class ModelNew(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.keep = 1.0 - rate

    def forward(self, x):
        with torch.inference_mode(torch.is_inference_mode_enabled()), contextlib.nullcontext():
            x = x.contiguous()
            rows, steps = x.shape
            out = x.new_empty((rows, steps))
            smooth[(triton.cdiv(rows, 16),)](x, out, rows, self.keep, STEPS=steps, BLOCK=16)
        return out
