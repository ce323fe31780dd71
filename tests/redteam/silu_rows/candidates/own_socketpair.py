# SPDX-License-Identifier: Apache-2.0
import socket
import threading

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    v = tl.load(src + at, mask=live, other=0.0)
    tl.store(dst + at, v * tl.sigmoid(v), mask=live)


def silu_into(x, y, n):
    silu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, n, BLOCK=8192)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        ours, theirs = socket.socketpair()
        sender = threading.Thread(target=theirs.sendall, args=(b"8192",))
        sender.start()
        sender.join()
        block = int(ours.recv(16))
        ours.close()
        theirs.close()
        y = torch.empty_like(x)
        silu_kernel[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=8192)
        return y
