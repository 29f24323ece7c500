"""Payloads to the fields of an entry and back, by the type of the handler's parameter.

A str or bytes is stored unchanged in the field `data`, anything else as JSON. An entry without that field,
added by another program, is read by its own fields: each is converted to the type that the payload needs.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from penstock.errors import PenstockError
from penstock.work import tracing

DATA = b"data"


class BadPayload(PenstockError):
    """An entry does not fit the type of its handler."""


def encode(payload: Any) -> list[bytes]:
    """The fields for a payload. Raises: BadPayload."""
    if isinstance(payload, bytes):
        return [DATA, payload]
    if isinstance(payload, str):
        return [DATA, payload.encode()]
    if _is_model(type(payload)):
        return [DATA, payload.model_dump_json().encode()]
    try:
        return [DATA, msgspec.json.encode(payload)]
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise BadPayload(f"a payload of type {type(payload).__name__}: {error}") from None


class PayloadType:
    """Decodes entries to one type."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self._decoder = None
        if kind not in (bytes, str) and not _is_model(kind):
            self._decoder = msgspec.json.Decoder(kind)

    def decode(self, fields: list[bytes]) -> Any:
        """The payload of an entry, given by its flat list of fields. Raises: BadPayload."""
        if len(fields) == 2 and fields[0] == DATA:
            by_name = {DATA: fields[1]}
        else:
            pairs = zip(fields[::2], fields[1::2], strict=True)
            by_name = {name: value for name, value in pairs if name not in tracing.FIELDS}
        try:
            return self._decoded(by_name)
        except Exception as error:  # noqa: BLE001 - the type's own code runs here
            raise BadPayload(f"the payload is no {_name(self.kind)}: {text_of(error)}") from None

    def _decoded(self, by_name: dict[bytes, bytes]) -> Any:
        if self.kind in (bytes, str):
            if DATA not in by_name and len(by_name) != 1:
                raise ValueError("there is no field `data`")
            raw = by_name.get(DATA, next(iter(by_name.values())))
            return raw if self.kind is bytes else raw.decode()
        if DATA in by_name:
            if self._decoder is None:
                return self.kind.model_validate_json(by_name[DATA])
            return self._decoder.decode(by_name[DATA])
        texts = {name.decode(): value.decode() for name, value in by_name.items()}
        if self._decoder is None:
            return self.kind.model_validate(texts)
        return msgspec.convert(texts, self.kind, strict=False)


def key_of(payload: Any, name: str) -> str:
    """The key of a payload: an item of a dict, or an attribute. Raises: BadPayload."""
    try:
        found = payload.get(name) if isinstance(payload, dict) else getattr(payload, name, None)
        text = None if found is None else str(found)
    except Exception as error:  # noqa: BLE001 - the type's own code runs here
        raise BadPayload(f"the key {name!r} cannot be read: {text_of(error)}") from None
    if text is None:
        raise BadPayload(f"the payload has no key {name!r}")
    return text


def text_of(value: object) -> str:
    """The text of an exception or of another value, also if its __str__ raises."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001
        return f"({type(value).__name__}.__str__ raised {type(error).__name__})"


def _is_model(kind: Any) -> bool:
    """Tell whether a type is a pydantic model, without importing pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
