# SPDX-License-Identifier: Apache-2.0
"""What a reference's guest does with inputs: other values of the same layout, and float64.

Imported by host.py in the zygote. Nothing here knows a candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_MOST_ELEMENTS = 1 << 25  # of a tensor that is varied: in float64, several times over
_WIDE = {
    torch.complex64: torch.complex128,
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
}


def vary(inputs: Any, distribution: str) -> Any:
    """Inputs with their floating tensors given other values; see guest::Distribution.

    What a float tensor of whole numbers says (labels, masks, lengths) stays as it is, and so do
    tensors that share memory or are large. One that comes twice stays one.
    """
    owners: dict[int, set[int]] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is torch.strided:
            owners.setdefault(tensor.untyped_storage().data_ptr(), set()).add(id(tensor))
        return tensor

    made: dict[int, torch.Tensor] = {}

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided:
            return tensor
        if len(owners[tensor.untyped_storage().data_ptr()]) > 1:
            return tensor
        if id(tensor) not in made:
            made[id(tensor)] = _varied(tensor, distribution)
        return made[id(tensor)]

    _mapped(inputs, note)
    return _mapped(inputs, change)


def _varied(tensor: torch.Tensor, distribution: str) -> torch.Tensor:
    values = tensor.detach()
    if not values.is_floating_point() or not values.is_contiguous():
        return tensor
    if not 0 < values.numel() <= _MOST_ELEMENTS:
        return tensor
    wide = values.double()
    if not bool(torch.isfinite(wide).all()) or bool((wide == wide.round()).all()):
        return tensor
    if distribution == "shifted":
        is_one_sided = bool((wide >= 0).all()) or bool((wide <= 0).all())
        wide = wide - wide.mean() if is_one_sided else wide + wide.std(correction=0)
    elif distribution == "scaled":
        wide = wide * 3
    else:
        wide = _with_special(wide)
    varied = wide.to(values.dtype)
    if distribution != "special" and varied.dtype is torch.float32:
        varied = _off_the_grid(varied)
    return varied.requires_grad_(tensor.requires_grad)


def _off_the_grid(values: torch.Tensor) -> torch.Tensor:
    """Float32 numbers just above what TF32 and float16 can hold: rounding errors, which are of either
    sign otherwise and cancel in long sums, then all go one way."""
    steps = torch.randint(2048, 4000, values.shape, dtype=torch.int32, device=values.device)
    moved = ((values.view(torch.int32) & ~0x1FFF) | steps).view(torch.float32)
    return torch.where(values.abs() > 1e-4, moved, values)


def _with_special(wide: torch.Tensor) -> torch.Tensor:
    """Zeros of both signs, and neighbours that are equal, strewn over the tensor."""
    flat = wide.reshape(-1)
    kind = torch.randint(0, 24, flat.shape, device=flat.device)
    flat = torch.where(kind == 0, torch.zeros_like(flat), flat)
    flat = torch.where(kind == 1, -torch.zeros_like(flat), flat)
    return torch.where(kind == 2, flat.roll(1), flat).reshape(wide.shape)


def call_exactly(model: Any, arguments: Any, keywords: Any) -> Any:
    """What a widened model makes of inputs in float64, and of what it creates by itself likewise."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            return model(*_mapped(arguments, _widened), **_mapped(keywords, _widened))
    finally:
        torch.set_default_dtype(default)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(_WIDE.get(tensor.dtype, tensor.dtype))


def widen_model(model: Any) -> Any:
    """The model computing in float64, as far as its code lets it."""
    return model.double() if isinstance(model, torch.nn.Module) else model


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value) if type(value) is torch.Tensor else value
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_mapped(item, change) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value
