"""The functions that the readers of all formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import attrs

from crosswalk.convert.form import WireForm
from crosswalk.errors import CrosswalkError
from crosswalk.mapping.normalize import normalize
from crosswalk.request import CacheMark, ChatRequest
from crosswalk.service.client_requests.incoming import ClientRequest, Incoming, Wants
from crosswalk.types.json import dump_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import unchecked
from crosswalk.wire.fields import Fields, path_of, placed as placed
from crosswalk.wire.gemini import proto_name
from crosswalk.wire.options import WORDS, options_read

T = TypeVar("T")
_EPOCH = datetime.fromtimestamp(0, UTC)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_FIELDS = attrs.fields_dict(ChatRequest)


_TAKERS: Final[dict[str, Callable[[Fields, str], Any]]] = {
    "temperature": Fields.number,
    "top_p": Fields.number,
    "top_k": Fields.whole,
    "max_tokens": Fields.whole,
    "stop": lambda fields, name: _stop(fields, name),
    "seed": Fields.whole,
    "parallel_tool_calls": Fields.flag,
}


def options(fields: Fields, format: str, under: str = "") -> dict[str, Any]:
    """The options in *fields* that :class:`ChatRequest` has, in the spelling of *format* below *under*.

    Of two spellings of one option the later one in the table counts, and the other stays.
    """
    results: dict[str, Any] = {}
    for path, known in reversed(options_read(format).items()):
        name = path.removeprefix(under)
        if format == "gemini" and name not in fields:
            name = proto_name(name)
        if known.name in _TAKERS and known.name not in results and name in fields:
            results[known.name] = option(fields, name, known.name, _TAKERS[known.name](fields, name))
    return results


def _stop(fields: Fields, name: str) -> Any:
    if isinstance(fields.look(name), str):
        return fields.text(name)
    if not isinstance(fields.look(name), list):
        fields.refuse("must be a string or a list of strings", name)
    return fields.texts(name)


def take_neutral(body: Fields, format: str, more: Mapping[str, Any] = _NOTHING) -> dict[str, Any]:
    """The options of *body* that change nothing, by name: those of *format*, and *more* with their values."""
    neutral = {path: known.neutral for path, known in options_read(format).items() if known.name != "store"}
    results = {}
    for name, value in {**neutral, **more}.items():
        raw = body.look(name)
        if raw is not None and raw == value and (type(raw) is bool) is (type(value) is bool):
            results[name] = body.take(name)
    return results


def option(fields: Fields, name: str, field: str, value: Any) -> Any:
    """*value*, taken as *name*, as :class:`ChatRequest` has it in its *field*."""
    attribute = _FIELDS[field]
    with placed(fields, name):
        if callable(attribute.converter):
            value = attribute.converter(value)
        if attribute.validator is not None:
            attribute.validator(None, attribute, value)
    return value


def word(fields: Fields, name: str, words: Mapping[str, T]) -> T | None:
    """What the word in the field *name* means; one that is not among *words* stays, for there may be more some day."""
    raw = fields.look(name)
    if raw is None:
        return None
    if not isinstance(raw, str):
        return fields.text(name)  # type: ignore[return-value]  # it raises
    if raw not in words:
        return None
    fields.take(name)
    return words[raw]


def read_words(option: str, format: str) -> dict[str, str]:
    """What each word of *format* for *option* means."""
    return {raw: name for name, raw in WORDS[option][format].items() if isinstance(raw, str)}


def answer(fields: Fields, body: dict[str, Any], provider: str) -> ChatResponse:
    """An earlier answer, as *provider* sent it: *body*, made of *fields*, is read as any answer is.

    Raises:
        FieldError: that is no answer.
    """
    id = f"{path_of(fields.place)}"
    try:
        return normalize(
            dump_json(body),
            provider,
            id_factory=lambda: id,
            clock=lambda: _EPOCH,
            unknown="keep",
            keep_raw=False,
        )
    except CrosswalkError as error:
        problem = f"is no answer of {provider}: {error}"
    fields.refuse(problem)


def cache_marks(block: Fields | None, after: Any) -> Iterator[CacheMark]:
    """Return the mark of *block*, which is the last of the prompt's part that *after* names. Another one stays unread."""
    control = None if block is None else block.object("cache_control")
    if control is None:
        return
    if control.look("type") != "ephemeral" or control.look("ttl") not in (None, "5m", "1h"):
        control.leave()
        return
    control.take("type")
    yield CacheMark(after, control.take("ttl"))


def incoming(form: WireForm, body: Fields, said: dict[str, Any], wants: Wants, **requested: Any) -> Incoming:
    """Return the request in *body*: the canonical fields *requested*, those that every form has, and the unread rest.

    Raises:
        FieldError: the fields do not go together.
    """
    model = option(body, "model", "model", body.need("model", body.text("model")))
    fields = {"model": model, "stream": bool(body.flag("stream")), **options(body, form.key), **requested}
    with placed(body, "messages"):
        request = ChatRequest(**{name: value for name, value in fields.items() if value is not None})
        whole = unchecked(
            ClientRequest,
            **{name: getattr(request, name) for name in _FIELDS},
            form=form,
            said=said,
            unread=tuple(body.unread()),
            asked=request,
            headers={},
        )
    return Incoming(form=form, request=whole, wants=wants)
