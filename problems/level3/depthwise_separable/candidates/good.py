"""Depthwise separable convolution: the depthwise result feeds the product from registers."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def separable_kernel(
    x_ptr,
    depth_w_ptr,
    depth_b_ptr,
    point_w_ptr,
    point_b_ptr,
    y_ptr,
    C,
    O,
    height,
    width,
    CHANNELS: tl.constexpr,
    OUT: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """All output channels of PIXELS pixels of one image"""
    pixels = height * width
    image = tl.program_id(1)
    c = tl.arange(0, CHANNELS)[:, None]
    p = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)[None, :]
    inside = (c < C) & (p < pixels)
    plane_ptr = x_ptr + (image * C + c) * pixels

    depth = tl.zeros((CHANNELS, PIXELS), dtype=tl.float32)
    for tap in range(9):
        row, col = p // width + tap // 3 - 1, p % width + tap % 3 - 1
        in_image = (row >= 0) & (row < height) & (col >= 0) & (col < width)
        x = tl.load(plane_ptr + row * width + col, mask=inside & in_image, other=0.0)
        depth += x * tl.load(depth_w_ptr + c * 9 + tap, mask=c < C, other=0.0)
    depth += tl.load(depth_b_ptr + c, mask=c < C, other=0.0)
    depth = tl.where(inside, depth, 0.0)

    o = tl.arange(0, OUT)[:, None]
    c = tl.arange(0, CHANNELS)[None, :]
    w = tl.load(point_w_ptr + o * C + c, mask=(o < O) & (c < C), other=0.0)
    y = tl.dot(w, depth, input_precision="ieee") + tl.load(point_b_ptr + o, mask=o < O, other=0.0)
    y = tl.where(y < 0.0, 0.0, tl.where(y > 6.0, 6.0, y))
    tl.store(y_ptr + (image * O + o) * pixels + p, y, mask=(o < O) & (p < pixels))


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.depthwise = nn.Conv2d(in_channels, in_channels, 3, padding=1, groups=in_channels)
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        images, C, height, width = x.shape
        O = self.pointwise.weight.shape[0]
        y = x.new_empty((images, O, height, width))
        separable_kernel[(triton.cdiv(height * width, 128), images)](
            x,
            self.depthwise.weight,
            self.depthwise.bias,
            self.pointwise.weight,
            self.pointwise.bias,
            y,
            C,
            O,
            height,
            width,
            CHANNELS=triton.next_power_of_2(C),
            OUT=triton.next_power_of_2(O),
            PIXELS=128,
        )
        return y
