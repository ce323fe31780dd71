"""Transformer block from three kernels: norm, linear with its epilogue, and attention."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, n_rows, width, eps, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    inside = (row < n_rows) & (col < width)
    x = tl.load(x_ptr + row * width + col, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, axis=1)[:, None] / width, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1)[:, None] / width + eps)
    w = tl.load(w_ptr + col, mask=col < width)
    b = tl.load(b_ptr + col, mask=col < width)
    tl.store(y_ptr + row * width + col, centred * scale * w + b, mask=inside)


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    residual_ptr,
    y_ptr,
    M,
    N,
    K,
    GELU: tl.constexpr,
    RESIDUAL: tl.constexpr,
    TILE: tl.constexpr,
    TILE_K: tl.constexpr,
):
    """y [M, N] = x [M, K] w^T + b, then GELU or a residual where asked for"""
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    inside = (m < M) & (n < N)
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        k = start + tl.arange(0, TILE_K)
        x = tl.load(x_ptr + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n * K + k[:, None], mask=(n < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)
    if GELU:
        acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    if RESIDUAL:
        acc += tl.load(residual_ptr + m * N + n, mask=inside, other=0.0)
    tl.store(y_ptr + m * N + n, acc, mask=inside)


@triton.jit
def attention_kernel(qkv_ptr, y_ptr, length, heads, scale, LENGTH: tl.constexpr, DIM: tl.constexpr):
    """One head of one sequence, all its scores at once; qkv [batch, length, 3, heads, DIM]"""
    t, d = tl.arange(0, LENGTH), tl.arange(0, DIM)[None, :]
    sequence, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    position = (sequence * length + t)[:, None]
    inside = t[:, None] < length
    at = (position * 3 * heads + head) * DIM + d
    q = tl.load(qkv_ptr + at, mask=inside, other=0.0)
    k = tl.load(qkv_ptr + at + heads * DIM, mask=inside, other=0.0)
    v = tl.load(qkv_ptr + at + 2 * heads * DIM, mask=inside, other=0.0)
    score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    score = tl.where(t[None, :] < length, score, float("-inf"))
    e = tl.exp(score - tl.max(score, axis=1)[:, None])
    weight = e / tl.sum(e, axis=1)[:, None]
    y = tl.dot(weight, v, input_precision="ieee")
    tl.store(y_ptr + (position * heads + head) * DIM + d, y, mask=inside)


def norm(x: torch.Tensor, layer: nn.LayerNorm) -> torch.Tensor:
    width = x.shape[-1]
    n_rows = x.numel() // width
    y = torch.empty_like(x)
    norm_kernel[(triton.cdiv(n_rows, 32),)](
        x,
        layer.weight,
        layer.bias,
        y,
        n_rows,
        width,
        layer.eps,
        ROWS=32,
        COLS=triton.next_power_of_2(width),
    )
    return y


def linear(
    x: torch.Tensor, layer: nn.Linear, *, gelu: bool = False, residual: torch.Tensor | None = None
) -> torch.Tensor:
    N, K = layer.weight.shape
    M = x.numel() // K
    y = x.new_empty((*x.shape[:-1], N))
    linear_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        x,
        layer.weight,
        layer.bias,
        residual,
        y,
        M,
        N,
        K,
        GELU=gelu,
        RESIDUAL=residual is not None,
        TILE=64,
        TILE_K=64,
    )
    return y


def attend(qkv: torch.Tensor, heads: int) -> torch.Tensor:
    batch, length, packed = qkv.shape
    dim = packed // (3 * heads)
    y = qkv.new_empty((batch, length, heads * dim))
    attention_kernel[(batch * heads,)](
        qkv, y, length, heads, dim**-0.5, LENGTH=triton.next_power_of_2(length), DIM=dim
    )
    return y


class ModelNew(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        attended = attend(linear(norm(x, self.norm1), self.qkv), self.heads)
        x = linear(attended, self.out, residual=x)
        h = linear(norm(x, self.norm2), self.up, gelu=True)
        return linear(h, self.down, residual=x)
