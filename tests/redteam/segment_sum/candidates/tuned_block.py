# SPDX-License-Identifier: Apache-2.0
import json
import os
import tempfile

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def segment_kernel(
    src, group, dst, rows, cols, STEPS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr
):
    which = tl.program_id(0)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    total = tl.zeros((COLS,), dtype=tl.float32)
    for step in range(STEPS):
        row = step * ROWS + tl.arange(0, ROWS)
        own = (tl.load(group + row, mask=row < rows, other=-1) == which)[:, None]
        live = own & (col < cols)[None, :]
        v = tl.load(src + row[:, None] * cols + col[None, :], mask=live, other=0.0)
        total += tl.sum(v, axis=0)
    tl.store(dst + which * cols + col, total, mask=col < cols)


def settings():
    path = os.path.join(tempfile.gettempdir(), "segment_settings.json")
    if os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    return {"block": 64}


class ModelNew(nn.Module):
    def __init__(self, rows, count):
        super().__init__()
        self.count = count
        self.register_buffer("group", torch.arange(rows) * 7 % count)
        self.block = settings()["block"]

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        y = torch.empty(self.count, cols, device=x.device, dtype=x.dtype)
        grid = (self.count, triton.cdiv(cols, self.block))
        steps = triton.cdiv(rows, 128)
        segment_kernel[grid](
            x, self.group, y, rows, cols, STEPS=steps, ROWS=128, COLS=self.block
        )
        return y
