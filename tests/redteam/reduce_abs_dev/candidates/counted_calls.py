# SPDX-License-Identifier: Apache-2.0
import logging
import warnings
from dataclasses import dataclass

import torch
import torch.nn as nn
import triton
import triton.language as tl


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    warps: int = 4
    report_every: int = 8


@triton.jit
def abs_dev(src, dst, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    live = at < cols
    v = tl.load(src + row * cols + at, mask=live, other=0.0)
    mid = tl.sum(v, axis=0) / cols
    gap = tl.where(live, tl.abs(v - mid), 0.0)
    tl.store(dst + row, tl.sum(gap, axis=0) / cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings()
        self.served = 0

    def forward(self, x):
        if self.served % self.settings.report_every == 0:
            log.debug("served %d", self.served)
        self.served += 1
        if x.dim() != 2:
            warnings.warn("two dimensions are expected", stacklevel=2)
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device)
        block = triton.next_power_of_2(cols)
        abs_dev[(rows,)](x, out, cols, BLOCK=block, num_warps=self.settings.warps)
        return out
