"""The objects of providers' SDKs as decoded JSON, without importing any SDK.

They are recognized by their methods: pydantic models, and other objects with their ``model_dump``. Additions of an SDK for
its users, such as a snapshot of the answer so far, are left out, because the server did not send them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from enum import Enum
from typing import Any, Final, Protocol, TypeGuard


class Dumpable(Protocol):
    """An object of an SDK: a pydantic model."""

    @property
    def model_dump(self) -> Callable[..., Any]:
        """Return its fields."""


_ADDED: Final = ("parsed", "parsed_arguments", "parsed_output")
"""The additions of SDKs to models with names that begin with ``Parsed``."""
_GOOGLE: Final = ("sdkHttpResponse", "automaticFunctionCallingHistory", "parsed")
_HELPERS: Final = ("anthropic.lib.streaming", "openai.lib.streaming")
"""The modules in which SDKs define the events of their helpers for streams."""
_REPEATED: Final = {"content_block_stop": "content_block", "message_stop": "message"}


def is_dumpable(value: object) -> TypeGuard[Dumpable]:
    """Return whether *value* is an object of an SDK, and not such a class."""
    return callable(getattr(value, "model_dump", None)) and not isinstance(value, type)


def dumped(value: Dumpable) -> Any:
    """Return the fields of *value*, an object of an SDK, as decoded JSON, with every field that came.

    Returns:
        The decoded JSON, or ``None`` for an event that only the SDK's helper knows.

    Raises:
        TypeError: it contains a value without a JSON form.
    """
    kind = type(value)
    if kind.__module__.startswith(_HELPERS):
        return _helpers_event(value)
    raw = _plain(_dump(value))
    if kind.__module__.startswith("google.genai"):
        return {key: each for key, each in raw.items() if key not in _GOOGLE}
    return _without(raw, _ADDED) if kind.__name__.startswith("Parsed") else raw


def _dump(value: Any) -> Any:
    return value.model_dump(mode="python", by_alias=True, exclude_unset=True, warnings=False)


def _helpers_event(event: Any) -> Any:
    """Return the part of *event*, from an SDK's helper for streams, that the server has sent."""
    chunk = getattr(event, "chunk", None)
    if chunk is not None:  # openai's: the chunk, together with the result that has been made of it
        return dumped(chunk)
    if not event.type.startswith(("response.", "message_", "content_block_")):
        return None
    return _without(_plain(_dump(event)), (*_ADDED, "snapshot", _REPEATED.get(event.type, "")))


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if isinstance(value, dict):
        return {key: _without(each, names) for key, each in value.items() if key not in names}
    return value


def _plain(value: Any) -> Any:
    """*value* as JSON's own types."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        from base64 import b64encode  # no answer in JSON needs it

        return b64encode(value).decode()  # pydantic would write the alphabet of URLs, which no wire form has
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is no JSON")
