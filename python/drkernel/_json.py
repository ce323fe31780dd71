# SPDX-License-Identifier: Apache-2.0
"""JSON in and out, with errors that name the field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias, TypeVar

from drkernel.errors import ProtocolError, ValidationError

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"
JsonObject: TypeAlias = dict[str, JsonValue]

E = TypeVar("E", bound=StrEnum)


def _refuse_constant(name: str) -> JsonValue:
    raise ProtocolError(f"the answer holds {name}, which is no JSON")


def decode(data: bytes | str) -> JsonValue:
    try:
        value: JsonValue = json.loads(data, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ProtocolError(f"the answer is no JSON: {error}; it starts {data[:80]!r}") from error
    return value


def encode(value: Mapping[str, object]) -> bytes:
    """Raises ValidationError for what JSON cannot hold: NaN, and text that is not Unicode."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise ValidationError(f"not sent, since it is no JSON: {error}", 400) from error


class Fields:
    """An object's fields by name; what is absent or null is None."""

    def __init__(self, value: JsonValue, what: str) -> None:
        if not isinstance(value, dict):
            raise ProtocolError(f"{what}: got {_kind(value)}, wanted an object")
        self.raw: JsonObject = value
        self._what = what

    def text(self, name: str) -> str | None:
        value = self.raw.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(name, "a text")

    def required_text(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise self._wrong(name, "a text")
        return value

    def flag(self, name: str) -> bool | None:
        value = self.raw.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(name, "true or false")

    def number(self, name: str) -> float | None:
        value = self.raw.get(name)
        if value is None:
            return None
        # 1e999 reads as infinity.
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
            raise self._wrong(name, "a finite number")
        return float(value)

    def integer(self, name: str) -> int | None:
        value = self.raw.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "an integer")
        return value

    def object(self, name: str) -> JsonObject:
        """Empty when absent."""
        value = self.raw.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def list(self, name: str) -> list[JsonValue]:
        """Empty when absent."""
        value = self.raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def choice(self, name: str, kind: type[E]) -> E | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            return kind(value)
        except ValueError as error:
            raise self._wrong(name, f"one of {', '.join(kind)}") from error

    def required_choice(self, name: str, kind: type[E]) -> E:
        value = self.choice(name, kind)
        if value is None:
            raise self._wrong(name, f"one of {', '.join(kind)}")
        return value

    def _wrong(self, name: str, wanted: str) -> ProtocolError:
        value = self.raw.get(name)
        return ProtocolError(f"{self._what}: {name} is {_kind(value)}, wanted {wanted}")


def _kind(value: JsonValue) -> str:
    if value is None:
        return "null or absent"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return repr(value)[:80]
