"""Tool calls: whole, and as the fragments of a stream."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, final

import attrs
import orjson

from crosswalk.plain_errors import ResponseValidationError, ToolCallArgumentsError
from crosswalk.text import brief, short_repr
from crosswalk.types._value import LARGEST, check_count, check_text, one_of
from crosswalk.types.json import RepeatedKeyError, load_json


class CallKind(StrEnum):
    """The kind of content of a tool call."""

    FUNCTION = "function"
    """A JSON object with arguments."""
    CUSTOM = "custom"
    """Free text: the input of a tool that OpenAI calls a custom tool."""


def as_call_kind(value: object) -> CallKind | None:
    """Convert a kind: ``function`` becomes ``None``, the kind of every call that does not name one (an attrs converter)."""
    kind = None if value is None else one_of(CallKind, value, "unknown kind of tool call")
    return None if kind is CallKind.FUNCTION else kind


@brief
@final
@attrs.frozen(weakref_slot=False)
class ToolCall:
    """A call that the model asks the client to make.

    Attributes:
        id: the provider's id. If it sent none, a made-up one that ``provenance`` marks ``synthetic``.
        name: the tool's name.
        arguments: the exact text that the model wrote, valid JSON or not, or ``{}`` if it wrote nothing. It is empty
            only if the answer was cut before them, so that nobody knows them. For a custom call, the free text of its input.
        kind: ``custom`` for a call with free text, ``None`` for a function call with a JSON object.

    Raises:
        ResponseValidationError: id or name is empty, a field is not text, or the kind is unknown.
    """

    id: str
    name: str
    arguments: str = "{}"
    kind: CallKind | None = attrs.field(default=None, converter=as_call_kind)

    def __attrs_post_init__(self) -> None:
        id, name, arguments = self.id, self.name, self.arguments
        if not (
            type(id) is type(name) is type(arguments) is str
            and id.isascii()
            and name.isascii()
            and arguments.isascii()
        ):
            check_text(self, "id", "name", "arguments")
        if not id:
            raise ResponseValidationError("tool call id cannot be empty")
        if not name:
            raise ResponseValidationError("tool call name cannot be empty")

    @property
    def is_custom(self) -> bool:
        """Whether the arguments are free text."""
        return self.kind is CallKind.CUSTOM

    @property
    def has_valid_arguments(self) -> bool:
        """Whether :meth:`parsed` returns the arguments: they are a JSON object, or the call is a custom one."""
        try:
            self.parsed()
        except ToolCallArgumentsError:
            return False
        return True

    def parsed(self) -> dict[str, Any]:
        """Return the arguments, decoded, with every digit. For a custom call return ``{"input": text}``.

        An empty text is not an object: a whole answer has ``{}`` for a call without arguments.

        Raises:
            ToolCallArgumentsError: the text is not a JSON object, for example because the answer was cut, or it has
                a key twice.
        """
        if self.is_custom:
            return {"input": self.arguments}
        try:
            value = load_json(self.arguments, unique_keys=True)
        except RepeatedKeyError:
            raise self._bad("a key is repeated") from None
        except orjson.JSONDecodeError as error:
            raise self._bad(f"not JSON ({error.msg} at character {error.pos})") from None
        if not isinstance(value, dict):
            raise self._bad("not a JSON object")
        return value

    def _bad(self, cause: str) -> ToolCallArgumentsError:
        name, call_id = self.name[:60], self.id[:60]
        return ToolCallArgumentsError(
            f"arguments of tool call {call_id!r} to {name!r}: {cause}",
            name=self.name,
            call_id=self.id,
        )

    __repr__ = short_repr("id", "name", "arguments", "kind")


@brief
@final
@attrs.frozen(weakref_slot=False)
class ToolCallDelta:
    """A fragment of a tool call.

    Attributes:
        index: the call's position among the calls of its choice, in order of first appearance, from 0.
        id: the provider's id, once, on the fragment that brings it, else ``None``.
        name: the tool's name, once, on the fragment that brings it, else ``None``.
        arguments_delta: text to append to the arguments, or ``None`` if the fragment has none.
        kind: ``custom`` on a fragment of a call with free text, else ``None``.

    Raises:
        ResponseValidationError: the index is negative, or a field has another type.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments_delta: str | None = None
    kind: CallKind | None = attrs.field(default=None, converter=as_call_kind)

    def __attrs_post_init__(self) -> None:
        # Written out: this runs for every fragment of a stream.
        index, id, name, text = self.index, self.id, self.name, self.arguments_delta
        if type(index) is not int or not 0 <= index <= LARGEST:
            check_count(self, "index")
        if text is not None and (type(text) is not str or not text.isascii()):
            check_text(self, "arguments_delta")
        if id is not None and (type(id) is not str or not id.isascii()):
            check_text(self, "id")
        if name is not None and (type(name) is not str or not name.isascii()):
            check_text(self, "name")

    __repr__ = short_repr("index", "id", "name", "arguments_delta", "kind")


_new: Final = object.__new__
_set_index, _set_id, _set_name, _set_text, _set_kind = (
    vars(ToolCallDelta)[f.name].__set__ for f in attrs.fields(ToolCallDelta)
)


def arguments_delta(index: int, text: str) -> ToolCallDelta:
    """Return a fragment of arguments alone, for a caller that has checked its parts. It bypasses the constructor."""
    fragment = _new(ToolCallDelta)
    _set_index(fragment, index)
    _set_id(fragment, None)
    _set_name(fragment, None)
    _set_text(fragment, text)
    _set_kind(fragment, None)
    return fragment
