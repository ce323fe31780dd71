"""1x1 convolution as one matrix product per image, with ReLU before the store."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv1x1_relu_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    C,
    O,
    P,
    TILE_O: tl.constexpr,
    TILE_P: tl.constexpr,
    TILE_C: tl.constexpr,
):
    """y [O, P] = relu(w [O, C] x [C, P] + b) for the image of this program, P its pixels"""
    o = tl.program_id(0) * TILE_O + tl.arange(0, TILE_O)[:, None]
    p = tl.program_id(1) * TILE_P + tl.arange(0, TILE_P)[None, :]
    image = tl.program_id(2)
    acc = tl.zeros((TILE_O, TILE_P), dtype=tl.float32)
    for start in range(0, C, TILE_C):
        c = start + tl.arange(0, TILE_C)
        w = tl.load(w_ptr + o * C + c[None, :], mask=(o < O) & (c[None, :] < C), other=0.0)
        x_at = (image * C + c[:, None]) * P + p
        x = tl.load(x_ptr + x_at, mask=(c[:, None] < C) & (p < P), other=0.0)
        acc = tl.dot(w, x, acc, input_precision="ieee")
    y = acc + tl.load(b_ptr + o, mask=o < O)
    y = tl.where(y < 0.0, 0.0, y)
    tl.store(y_ptr + (image * O + o) * P + p, y, mask=(o < O) & (p < P))


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        w, b = self.conv.weight, self.conv.bias
        B, C, H, W = x.shape
        O, P = w.shape[0], H * W
        y = x.new_empty((B, O, H, W))
        grid = (triton.cdiv(O, 64), triton.cdiv(P, 128), B)
        conv1x1_relu_kernel[grid](x, w, b, y, C, O, P, TILE_O=64, TILE_P=128, TILE_C=32)
        return y
