"""Group normalisation and SiLU, one group of one image per program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def group_norm_silu_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, groups, pixels, SIZE: tl.constexpr, PIXELS: tl.constexpr
):
    """SIZE channels to a group"""
    in_group = tl.arange(0, SIZE)[:, None]
    pixel = tl.arange(0, PIXELS)[None, :]
    inside = pixel < pixels
    at = (tl.program_id(0) * SIZE + in_group) * pixels + pixel
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    n = SIZE * pixels
    centred = tl.where(inside, x - tl.sum(x) / n, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred) / n + 1e-5)
    channel = tl.program_id(0) % groups * SIZE + in_group
    z = centred * scale * tl.load(w_ptr + channel) + tl.load(b_ptr + channel)
    tl.store(y_ptr + at, z * tl.sigmoid(z), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(channels))
        self.bias = nn.Parameter(0.3 * torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        images, channels, height, width = x.shape
        pixels = height * width
        y = torch.empty_like(x)
        group_norm_silu_kernel[(images * self.groups,)](
            x,
            self.weight,
            self.bias,
            y,
            self.groups,
            pixels,
            SIZE=channels // self.groups,
            PIXELS=triton.next_power_of_2(pixels),
        )
        return y
