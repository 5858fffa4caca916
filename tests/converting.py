"""How conversions are judged: by the official SDKs' own types, and by a comparison that knows nothing of the report's making."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Context, Decimal
from typing import Any, Final, get_args

import anthropic
import attrs
import httpx2
import openai
import orjson
import pytest
from openai.types import ErrorObject
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter, ValidationError

from crosswalk import ChatResponse, FinishReason, Segment, SegmentType, UsageInfo, normalize
from crosswalk.codec.canonical import ABSENT, Difference, differences
from crosswalk.convert import Conversion, ConversionReport, Loss, LossReason, WireForm
from crosswalk.plugin.registry import registry
from crosswalk.types import IncompleteReason
from crosswalk.types.json import step

__all__ = [
    "FORMS",
    "PLAIN_FORMS",
    "accept_body",
    "accept_stream",
    "answer_of_client",
    "broad_first",
    "data_of",
    "form_of",
    "hidden_losses",
    "lost_essentials",
    "read_body",
    "read_stream",
    "trouble_of_client",
]

FORMS = (WireForm.OPENAI_CHAT, WireForm.OPENAI_RESPONSES, WireForm.ANTHROPIC)
"""Those that can say nearly all of an answer."""
PLAIN_FORMS = tuple(form for form in WireForm if form not in (*FORMS, WireForm.GEMINI))
"""Those that can say little beside text and, Ollama's, reasoning and calls."""

BROAD = ("anthropic", "openai_responses", "openrouter")
"""Whose answers have the most in them."""


def broad_first(providers: Iterable[str]) -> list[Any]:
    """Each of *providers* as a test's parameter. Those with few features of their answers alone are in the sweeps."""
    return [name if name in BROAD else pytest.param(name, marks=pytest.mark.sweep) for name in providers]


BODIES: dict[WireForm, TypeAdapter[Any]] = {
    WireForm.OPENAI_CHAT: TypeAdapter(ChatCompletion),
    WireForm.OPENAI_RESPONSES: TypeAdapter(Response),
    WireForm.ANTHROPIC: TypeAdapter(anthropic.types.Message),
}
EVENTS: dict[WireForm, TypeAdapter[Any]] = {
    WireForm.OPENAI_CHAT: TypeAdapter(ChatCompletionChunk),
    WireForm.OPENAI_RESPONSES: TypeAdapter(ResponseStreamEvent),
    WireForm.ANTHROPIC: TypeAdapter(anthropic.types.RawMessageStreamEvent),
}
EVENT_CLASSES = [
    kind.__name__
    for form in (ResponseStreamEvent, anthropic.types.RawMessageStreamEvent)
    for kind in get_args(get_args(form)[0])
]
OPENAI_ERROR = TypeAdapter(ErrorObject)
ANTHROPIC_ERROR = TypeAdapter(anthropic.types.ErrorResponse)


# The SDKs' types.


def accept_body(conversion: Conversion[bytes], source: bytes = b"") -> None:
    """Raise unless the SDK's type of a body, or of an error, takes it strictly.

    If the answer came in the same form, as *source*, its faults come back, too.
    """
    form, body = conversion.report.form, conversion.value
    if conversion.status != 200:
        accept_error(form, orjson.loads(body))
        return
    found = _refused(BODIES[form], body)
    assert not found or found.keys() <= _refused_of(form, source), f"to {form}: {found}"


def _refused(adapter: TypeAdapter[Any], data: bytes) -> dict[tuple[Any, ...], str]:
    """The faults of *data*: the path, without the place in a list and in an event, and the reason."""
    try:
        adapter.validate_json(data, strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    else:
        return {}
    others = {
        each["loc"][:-1] for each in errors if each["type"] == "literal_error" and each["loc"][-1] == "type"
    }
    found = [  # without what is another one of a union
        each for each in errors if not any(each["loc"][:end] in others for end in range(len(each["loc"])))
    ]
    return {
        (
            *filter(None, (_SAME.get(str(step), str(step)) for step in each["loc"] if type(step) is str)),
            each["type"],
        ): each["msg"]
        for each in found
    }


_SAME: Final = {"delta": "message", "item": "output", **dict.fromkeys((*EVENT_CLASSES, "response"), "")}
"""How a body calls what stands elsewhere in an event."""


def _refused_of(form: WireForm, source: bytes) -> set[tuple[Any, ...]]:
    """The faults of *source*, a body in *form* or a stream of it. None if it has another form."""
    if form_of(source) is not form:
        return set()
    if source.lstrip().startswith(b"{"):
        return set(_refused(BODIES[form], source))
    return {each for data in data_of(source) for each in _refused(EVENTS[form], orjson.dumps(data))}


def form_of(source: bytes) -> WireForm | None:
    """The form of a recorded answer, whole or streamed. ``None`` for any other."""
    body = source.lstrip().startswith(b"{")
    data: Any = None
    with suppress(orjson.JSONDecodeError):
        data = orjson.loads(source) if body else next(data_of(source), None)
    match data:
        case {"object": "response"}:
            return WireForm.OPENAI_RESPONSES
        case {"type": "message", "content": list()} | {"type": "message_start"}:
            return WireForm.ANTHROPIC
        case {"type": str(kind)} if kind.startswith("response."):
            return WireForm.OPENAI_RESPONSES
        case {"choices": [{"message": dict()}, *_]} | {"object": "chat.completion.chunk"}:
            return WireForm.OPENAI_CHAT
    return None


def accept_error(form: WireForm, data: Any) -> None:
    if form is WireForm.ANTHROPIC:
        ANTHROPIC_ERROR.validate_python(data, strict=True)
    else:
        OPENAI_ERROR.validate_python(data["error"], strict=True)


def data_of(stream: bytes) -> Iterator[Any]:
    """The data of each event, the mark of the end apart."""
    for line in stream.splitlines():
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield orjson.loads(data)


def accept_stream(form: WireForm, stream: bytes, source: bytes = b"") -> None:
    """Raise unless the SDK's types of events take every event strictly. *source* as for :func:`accept_body`."""
    known: set[tuple[Any, ...]] | None = None
    for data in data_of(stream):
        if "error" in data and data.get("type", "error") == "error":
            accept_error(form, data)
        elif found := _refused(EVENTS[form], orjson.dumps(data)):
            known = _refused_of(form, source) if known is None else known
            assert found.keys() <= known, f"to {form}: {found}"


# The SDKs' clients.


def answer_of_client(form: WireForm, stream: bytes) -> tuple[str, Any]:
    """The official client's result for *stream*: the text, and the final object of its stream parser."""

    def handler(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    http: Any = httpx2.Client(transport=httpx2.MockTransport(handler))
    messages: Any = [{"role": "user", "content": "?"}]
    if form is WireForm.ANTHROPIC:
        with (
            anthropic.Anthropic(api_key="k", http_client=http, max_retries=0) as client,
            client.messages.stream(model="m", max_tokens=9, messages=messages) as events,
        ):
            message = events.get_final_message()
            return "".join(block.text for block in message.content if block.type == "text"), message
    with openai.OpenAI(api_key="k", http_client=http, max_retries=0) as client:  # type: ignore[assignment]
        if form is WireForm.OPENAI_CHAT:
            with client.chat.completions.stream(model="m", messages=messages) as chunks:
                completion = chunks.get_final_completion()
                return completion.choices[0].message.content or "", completion
        with client.responses.stream(model="m", input="?") as events:
            response = events.get_final_response()
            return response.output_text, response


DELIBERATE: Final[dict[WireForm, tuple[tuple[type[Exception], str], ...]]] = {
    WireForm.OPENAI_CHAT: (
        (openai.LengthFinishReasonError, ""),  # finish_reason "length": there may be half an answer
        (openai.ContentFilterFinishReasonError, ""),  # finish_reason "content_filter": likewise
        (openai.APIError, ""),  # the stream ends with an error
    ),
    WireForm.OPENAI_RESPONSES: (
        (RuntimeError, "Didn't receive a `response.completed` event."),  # failed, incomplete or cancelled
    ),
    WireForm.ANTHROPIC: ((anthropic.APIError, ""),),  # the stream ends with an error
}
"""What the official clients raise on purpose, for what an answer says: each error with its message, ``""`` for any."""


def trouble_of_client(form: WireForm, stream: bytes) -> str | None:
    """Why the official client cannot make an answer of *stream*. ``None`` where it can, or raises on purpose."""
    try:
        with warnings.catch_warnings():  # of its own serializer, about tools that the SDK does not know
            warnings.filterwarnings("ignore", "Pydantic serializer warnings")
            answer_of_client(form, stream)
    except Exception as error:
        for kind, message in DELIBERATE[form]:
            if isinstance(error, kind) and message in str(error):
                return None
        return f"the client raises {type(error).__name__}: {str(error)[:200]}"
    return None


# Reading back.


def read_body(conversion: Conversion[bytes], provider: str | None = None) -> ChatResponse:
    """The canonical answer of a converted body, as anybody reads it who gets it over HTTP.

    *provider* reads it where it goes back to the form that it received.
    """
    own = provider or conversion.report.form.provider
    return normalize(conversion.value, own, status=conversion.status, unknown="keep")


def read_stream(form: WireForm, stream: bytes, provider: str | None = None) -> ChatResponse:
    """The canonical answer of a converted stream. *provider* reads it where it has words of its own for what it said."""
    spells = provider is not None and registry.mapper(provider).info.spell is not None
    return normalize(stream, provider if provider and spells else form.provider, unknown="keep")


# Comparison.

FREE = ("metadata.extensions", "metadata.provenance")


def hidden_losses(before: ChatResponse, after: ChatResponse, report: ConversionReport) -> list[str]:
    """The parts of *before* that *after* lacks and *report* does not name."""
    named = {loss.path for loss in report.differences}
    others = {alternative.index: alternative for alternative in after.alternatives}
    known = [  # at the place where it stood; one that is named as lost leaves its place
        one if report.names(f"alternatives[{number}]") else others[one.index]
        for number, one in enumerate(before.alternatives)
    ]
    new = set(others) - {one.index for one in before.alternatives}
    aligned = attrs.evolve(after, alternatives=[*known, *(others[index] for index in sorted(new))])
    found = [
        difference.place
        for difference in differences(_without_segments(before), _without_segments(aligned))
        if not _is_allowed(difference, report, named)
    ]
    found += _segments("segments", before.segments, after.segments, report)
    for number, alternative in enumerate(before.alternatives):
        path = f"alternatives[{number}].segments"
        if not report.names(path):
            found += _segments(path, alternative.segments, others[alternative.index].segments, report)
    return found


def _without_segments(response: ChatResponse) -> ChatResponse:
    others = [attrs.evolve(alternative, segments=()) for alternative in response.alternatives]
    return attrs.evolve(response, segments=(), alternatives=others)


def _is_allowed(difference: Difference, report: ConversionReport, named: set[str]) -> bool:
    if report.names(difference.place.removesuffix("_seconds")):
        return True
    if difference.after is ABSENT and isinstance(difference.before, dict | list):
        before = difference.before
        keys = before if isinstance(before, dict) else range(len(before))
        inside = (Difference((*difference.path, key), before[key], ABSENT) for key in keys)
        return all(_is_allowed(inner, report, named) for inner in inside)
    if difference.before is ABSENT and difference.place in ("id", "created"):  # the original's is made up
        return f"metadata.provenance.{difference.place}" in named
    if difference.field.endswith(("logprobs[].bytes", "logprobs[].top[].bytes")):
        prefix = difference.place.partition("logprobs[")[0]
        return prefix + difference.field[difference.field.index("logprobs[") :] in named
    return difference.before is ABSENT and difference.place.startswith(FREE)


def _segments(
    path: str, before: Iterable[Segment], after: Iterable[Segment], report: ConversionReport
) -> Iterator[str]:
    exact = {loss.path for loss in report.differences}
    kept = [
        (number, segment)
        for number, segment in enumerate(before)
        if _is_something(segment) and f"{path}[{number}]" not in exact
    ]
    rest = [segment for segment in after if _is_something(segment)]
    joined = {segment.type for number, segment in enumerate(before) if f"{path}[{number}]" in exact}
    if path in exact:
        # The order, or the parts, are others: what there is must be there.
        there = Counter((s.type, s.content) for s in rest)
        for number, segment in kept:
            changed = report.names(f"{path}[{number}].content")
            if not changed and segment.content and not there[segment.type, segment.content]:
                yield f"{path}[{number}]: nowhere"
        return
    place = 0
    for number, segment in kept:
        while place < len(rest) and not _is_same(f"{path}[{number}]", segment, rest[place], report):
            if rest[place].type not in joined:
                yield f"{path}[{number}]: not the same"
                return
            place += 1
        if place == len(rest):
            yield f"{path}[{number}]: missing"
            return
        place += 1


def _is_something(segment: Segment) -> bool:
    return bool(segment.content or segment.metadata or segment.annotations)


def _is_same(path: str, one: Segment, other: Segment, report: ConversionReport) -> bool:
    if one.type is not other.type:
        return False
    if one.content != other.content and not report.names(f"{path}.content"):
        return False
    about, there = one.metadata.thawed(), other.metadata.thawed()
    lost = {key for key in about if key not in there or _text(about[key]) != _text(there[key])}
    if not all(report.names(f"{path}.metadata{step(key)}") for key in lost):
        return False
    notes = list(other.annotations) + [None] * len(one.annotations)
    for number, (note, its) in enumerate(zip(one.annotations, notes, strict=False)):
        if note != its and not any(
            loss.path.startswith(f"{path}.annotations[{number}]") for loss in report.differences
        ):
            return False
    return True


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


_NEAREST: dict[IncompleteReason | None, FinishReason] = {
    IncompleteReason.CANCELLED: FinishReason.LENGTH,
    IncompleteReason.REFUSAL: FinishReason.CONTENT_FILTER,
    IncompleteReason.PAUSED: FinishReason.LENGTH,
}
"""As what an answer that is not whole may be read where its form has no other word for it."""


def lost_essentials(before: ChatResponse, after: ChatResponse, report: ConversionReport) -> Iterator[str]:
    """Text, reasoning, calls, the end and the counts: unchanged, whatever the report says, where the form has them."""
    if before.finish_reason is FinishReason.ERROR:
        if after.finish_reason is not FinishReason.ERROR or after.refusal != before.refusal:
            yield "the error"
        return
    # A client of Messages gets a refusal as text, too.
    if after.text not in (before.text, before.text + (before.refusal or "")):
        yield "the text"
    if after.reasoning != before.reasoning:
        yield "the reasoning"
    if after.finish_reason is not before.finish_reason and after.finish_reason is not _NEAREST.get(
        before.incomplete_reason
    ):
        yield "the finish reason"
    if (after.refusal or "") != (before.refusal or ""):
        yield "the refusal"
    if len(after.tool_calls) != len(before.tool_calls):
        yield "the number of calls"
    for number, (one, other) in enumerate(zip(before.tool_calls, after.tool_calls, strict=False)):
        if (one.id, one.name) != (other.id, other.name):
            yield f"the call {one.id}"
        given, got = _parsed(one.arguments), _parsed(other.arguments)
        if given is not None and given != got:
            yield f"the arguments of {one.id}"
        loss = Loss(f"message.tool_calls[{number}].arguments", LossReason.CHANGED)
        if (
            given is not None
            and _exact(one.arguments) != _exact(other.arguments)
            and loss not in report.differences
        ):
            yield f"the digits or keys in the arguments of {one.id}"
        if given is None and one.arguments != other.arguments and report.form is not WireForm.ANTHROPIC:
            yield f"the broken arguments of {one.id}"
    if _counts(before.usage) != _counts(after.usage):
        yield "the counts"
    if before.usage.cost != after.usage.cost and not any(
        loss.path == "usage.cost" for loss in report.differences
    ):
        yield "the cost"
    if report.form is WireForm.ANTHROPIC and _signatures(before) != _signatures(after):
        yield "the signatures"


def _parsed(text: str) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _exact(text: str) -> Any:
    """The value of the JSON *text*: with every digit of numbers, and every key of objects, also one that comes twice."""
    return json.loads(
        text,
        parse_int=lambda digits: ("integer", digits),
        parse_float=lambda digits: ("number", Decimal(digits, Context(traps=[]))),
        object_pairs_hook=lambda pairs: sorted(pairs, key=lambda pair: pair[0]),
    )


def _counts(usage: UsageInfo) -> tuple[int, ...]:
    fields = attrs.asdict(usage, filter=lambda field, _: field.name not in ("cost", "details"))
    return tuple(count or 0 for count in fields.values())


def _signatures(response: ChatResponse) -> list[Any]:
    return [
        segment.metadata["signature"]
        for segment in response.segments
        if segment.type is SegmentType.REASONING and "signature" in segment.metadata
    ]
