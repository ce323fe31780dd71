"""One program per label, each of which reads all labels."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(label_ptr, count_ptr, n, BLOCK: tl.constexpr):
    wanted = tl.program_id(0)
    count = tl.zeros((BLOCK,), dtype=tl.int64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        count += tl.load(label_ptr + i, mask=i < n, other=-1) == wanted
    tl.store(count_ptr + wanted, tl.sum(count, axis=0))


class ModelNew(nn.Module):
    def __init__(self, n_labels: int):
        super().__init__()
        self.n_labels = n_labels

    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        labels = labels.contiguous()
        counts = torch.empty(self.n_labels, dtype=torch.int64, device=labels.device)
        count_kernel[(self.n_labels,)](labels, counts, labels.numel(), BLOCK=8192)
        return counts
