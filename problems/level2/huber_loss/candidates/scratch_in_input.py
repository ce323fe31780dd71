"""Huber loss as a kernel for the elements and one for their mean."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(prediction_ptr, target_ptr, n, delta, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    prediction = tl.load(prediction_ptr + i, mask=i < n, other=0.0)
    target = tl.load(target_ptr + i, mask=i < n, other=0.0)
    error = tl.abs(prediction - target)
    loss = tl.where(error < delta, 0.5 * error * error, delta * (error - 0.5 * delta))
    tl.store(prediction_ptr + i, loss, mask=i < n)


@triton.jit
def mean_kernel(x_ptr, mean_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(mean_ptr, tl.sum(total, axis=0) / n)


class ModelNew(nn.Module):
    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        prediction, target = prediction.contiguous(), target.contiguous()
        n = prediction.numel()
        mean = prediction.new_empty(())
        loss_kernel[(triton.cdiv(n, 4096),)](prediction, target, n, self.delta, BLOCK=4096)
        mean_kernel[(1,)](prediction, mean, n, BLOCK=4096)
        return mean
