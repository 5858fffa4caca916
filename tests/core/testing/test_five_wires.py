"""Plugins for five wires of real vendors, each written after its public documents, on captures invented for them.

They pass the kit without an exception: cumulative text with counts as texts, an envelope, a plain completion, an API without
a terminal signal, and a stream of text events.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk.plugin.registry import Registry
from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    ProviderHooks,
    ProviderInfo,
    ResponseDelta,
    UnknownEventError,
    UsageInfo,
    accept_count,
    accept_object,
    accept_string,
    hookimpl,
    leave_mistyped,
    look_at_time,
    require_object,
    take_array,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_string,
)
from crosswalk.testing import Capture, check_capture, check_pair, pairs

STOP, LENGTH, FILTER = FinishReason.STOP, FinishReason.LENGTH, FinishReason.CONTENT_FILTER


class SoFar:
    text = ""


class YandexGPT(ProviderHooks):
    """https://yandex.cloud/en/docs/foundation-models: each line has all of the text so far. Counts are texts."""

    words = {
        "ALTERNATIVE_STATUS_FINAL": STOP,
        "ALTERNATIVE_STATUS_TRUNCATED_FINAL": LENGTH,
        "ALTERNATIVE_STATUS_CONTENT_FILTER": FILTER,
    }

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        event = require_object(event)
        if "error" in event:
            yield take_error(event)
            return
        result = take_object(event, "result")
        if result is None:
            raise UnknownEventError("an event without a result")
        state.take_identity(result, id="", model="modelVersion", created="")
        for number, choice in enumerate(take_objects(result, "alternatives")):
            message, so_far = take_object(choice, "message") or {}, state.own(SoFar)
            text = take_string(message, "text") or ""
            if number or not text.startswith(so_far.text):
                raise UnknownEventError("another alternative, or a text that does not go on")
            take_same(message, "role", "assistant")
            new, so_far.text = text[len(so_far.text) :], text
            if new:
                yield ResponseDelta(content_delta=new)
            status = take_string(choice, "status")
            if status and status != "ALTERNATIVE_STATUS_PARTIAL":
                yield ResponseDelta(raw_finish_reason=status)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        return self.words.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        usage = accept_object(accept_object(event, "result") or {}, "usage")
        if usage is None:
            return None
        prompt, completion = self.number(usage, "inputTextTokens"), self.number(usage, "completionTokens")
        if prompt is not None and completion is not None:
            take_same(usage, "totalTokens", str(prompt + completion))
        return state.usage_info(prompt, completion)

    def number(self, usage: dict[str, Any], key: str) -> int | None:
        text = accept_string(usage, key)
        if text is None:
            return None
        if text.isascii() and text.isdecimal() and str(int(text[:18])) == text:
            return int(text)
        usage[key] = text
        leave_mistyped(usage, key)
        return None


def yandex(text: str, status: str = "PARTIAL", completion: str = "1") -> dict[str, Any]:
    usage = {
        "inputTextTokens": "12",
        "completionTokens": completion,
        "totalTokens": str(12 + int(completion)),
    }
    choice = {
        "message": {"role": "assistant", "text": text},
        "status": f"ALTERNATIVE_STATUS_{status}",
    }
    return {"result": {"alternatives": [choice], "usage": usage, "modelVersion": "23.10.2025"}}


class DashScope(ProviderHooks):
    """https://www.alibabacloud.com/help/en/model-studio: an envelope around a message. A failure has a code at its top."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        event = require_object(event)
        if "code" in event:
            yield take_error(event, self.map_error(0, event))
            return
        output = take_object(event, "output")
        if output is None:
            raise UnknownEventError("an event without an output")
        state.take_identity(event, id="request_id")
        for number, choice in enumerate(take_objects(output, "choices")):
            message = take_object(choice, "message") or {}
            take_same(message, "role", "assistant")
            if text := take_string(message, "content"):
                yield ResponseDelta(content_delta=text, choice=number)
            word = take_string(choice, "finish_reason")
            if word and word != "null":
                yield ResponseDelta(raw_finish_reason=word, choice=number)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        return {"stop": STOP, "length": LENGTH}.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        usage = accept_object(event, "usage")
        if usage is None:
            return None
        prompt, completion = accept_count(usage, "input_tokens"), accept_count(usage, "output_tokens")
        take_same(usage, "total_tokens", (prompt or 0) + (completion or 0))
        return state.usage_info(prompt, completion)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        if not isinstance(body, dict) or "code" not in body:
            return None
        busy = body["code"] == "Throttling.RateQuota"
        kind = ErrorKind.RATE_LIMIT if busy else ErrorKind.INVALID_REQUEST
        return ErrorInfo(kind, str(body.get("message")), busy, status or None, str(body["code"]), dict(body))


def dashscope(text: str, word: str = "null", **more: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": word}
    return {"output": {"choices": [choice]}, "request_id": "r-1", **more}


DASHSCOPE_USAGE = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}


class Watsonx(ProviderHooks):
    """https://cloud.ibm.com/apidocs/watsonx-ai: a list of one result. A piece says not_finished."""

    words = {"eos_token": STOP, "stop_sequence": STOP, "max_tokens": LENGTH, "token_limit": LENGTH}

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        event = require_object(event)
        if "errors" in event:
            yield take_error(event)
            return
        if "results" not in event:
            raise UnknownEventError("an event without results")
        state.take_identity(event, id="", model="model_id", created="")
        if state.created is None:
            state.identify(created=look_at_time(event, "created_at"))
            if state.created is not None:
                del event["created_at"]
        results = take_objects(event, "results")
        if len(results) > 1:
            raise UnknownEventError("several results")
        for result in results:
            if text := take_string(result, "generated_text"):
                yield ResponseDelta(content_delta=text)
            word = take_string(result, "stop_reason")
            if word and word.lower() != "not_finished":
                yield ResponseDelta(raw_finish_reason=word)
            event["counts"] = result

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        return self.words.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        counts = event.get("counts", {})
        return state.usage_info(
            accept_count(counts, "input_token_count"), accept_count(counts, "generated_token_count")
        )

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        counts = event.pop("counts", None)
        return {**event, "results": [counts]} if counts else event


def watsonx(text: str, word: str = "not_finished", prompt: int = 0, completion: int = 1) -> dict[str, Any]:
    result = {"generated_text": text, "generated_token_count": completion, "input_token_count": prompt}
    return {
        "model_id": "ibm/granite-3",
        "created_at": "2026-01-01T09:45:00.250Z",
        "results": [{**result, "stop_reason": word}],
    }


class Triton(ProviderHooks):
    """https://github.com/triton-inference-server/tensorrtllm_backend: no terminal signal, and log probabilities as an array."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Triton", pieces=("output_log_probs",))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        event = require_object(event)
        if "error" in event:
            return [take_error(event)]
        if "text_output" not in event:
            raise UnknownEventError("an event without text")
        state.take_identity(event, id="", model="model_name", created="")
        text = take_string(event, "text_output")
        return [ResponseDelta(content_delta=text)] if text else []


def triton(text: str, *logprobs: float) -> dict[str, Any]:
    head = {"model_name": "ensemble", "model_version": "1", "sequence_end": False}
    return {**head, "text_output": text, "output_log_probs": list(logprobs)}


class Replicate(ProviderHooks):
    """https://replicate.com/docs/topics/predictions/streaming: text in events, JSON at their end. A prediction as a whole."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Replicate", text_events=("output", "error"))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        event, kind = require_object(event), state.event_name
        if kind == "output":
            text = take_string(event, "data")
            yield from [ResponseDelta(content_delta=text)] if text else []
        elif kind == "error":
            message = str(event.get("data"))
            yield take_error(event, ErrorInfo(ErrorKind.SERVER, message, True, None, None, dict(event)))
        elif kind == "done":
            yield ResponseDelta(raw_finish_reason=take_string(event, "reason") or "")
        elif kind is not None or event.get("status") not in ("succeeded", "failed", "canceled"):
            raise UnknownEventError(
                "an event of an unknown kind, or a prediction that still runs", event_type=kind
            )
        else:
            state.take_identity(event, created="")
            pieces = take_array(event, "output")
            if not all(isinstance(piece, str) for piece in pieces):
                raise UnknownEventError("an output that is not text")
            yield from (ResponseDelta(content_delta=piece) for piece in pieces if piece)
            status = take_string(event, "status") or ""
            if status == "failed":
                message = str(event.get("error"))
                yield take_error(event, ErrorInfo(ErrorKind.SERVER, message, True, None, None, dict(event)))
            else:
                yield ResponseDelta(raw_finish_reason=status)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        return {"": STOP, "succeeded": STOP, "canceled": FinishReason.CANCELLED}.get(reason)


PREDICTION = {
    "id": "p-1",
    "model": "meta/llama",
    "status": "succeeded",
    "input": {"prompt": "Tell"},
    "output": ["Once upon", " a time"],
    "metrics": {"predict_time": 0.25},
}


def lines(*events: Any) -> bytes:
    return b"".join(orjson.dumps(event) + b"\n" for event in events)


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)


def capture(case: str, body: bytes, *, stream: bool = False, status: int = 200, **says: Any) -> Capture:
    name = f"{case}_stream" if stream else case
    return Capture(name, Path(name), body, status=status, stream=stream, pair=case, says=says)


def both(case: str, whole: bytes, streamed: bytes, **says: Any) -> list[Capture]:
    return [capture(case, whole, **says), capture(case, streamed, stream=True, **says)]


USAGE = {"prompt_tokens": 12, "completion_tokens": 3}
HELLO = {"text": "Hello there", "usage": USAGE}
WIRES: dict[str, tuple[Any, list[Capture]]] = {
    "yandexgpt": (
        YandexGPT(),
        [
            *both("talk", lines(yandex("Hello there", "FINAL", "3")),
                  lines(yandex("Hello"), yandex("Hello there", "FINAL", "3")), **HELLO, finish="stop", model="23.10.2025"),
            *both("long", lines(yandex("One two", "TRUNCATED_FINAL", "3")),
                  lines(yandex("One"), yandex("One two", "TRUNCATED_FINAL", "3")), text="One two", finish="length"),
            capture("key", lines({"error": {"httpCode": 401, "message": "unauthorized"}}), status=401, error="authentication"),
        ],
    ),
    "dashscope2": (
        DashScope(),
        [
            *both("talk", lines(dashscope("Hello there", "stop", usage=DASHSCOPE_USAGE)),
                  sse(dashscope("Hello"), dashscope(" there", "stop", usage=DASHSCOPE_USAGE)), **HELLO, finish="stop", id="r-1"),
            capture("long", lines(dashscope("One", "length", usage=DASHSCOPE_USAGE)), text="One", finish="length"),
            capture("busy", lines({"code": "Throttling.RateQuota", "message": "slow down", "request_id": "r-2"}), status=429,
                    error="rate_limit", retryable=True),
        ],
    ),
    "watsonx": (
        Watsonx(),
        [
            *both("talk", lines(watsonx("Hello there", "eos_token", 12, 3)),
                  sse(watsonx("Hello", prompt=12), watsonx(" there", "eos_token", 12, 3)), **HELLO,
                  finish="stop", created="2026-01-01T09:45:00.250Z"),
            capture("long", lines(watsonx("One", "max_tokens", 12, 3)), text="One", finish="length"),
            capture("key", lines({"errors": [{"code": "authentication_token_expired", "message": "expired"}], "trace": "t-1"}),
                    status=401, error="authentication"),
        ],
    ),
    "triton": (
        Triton(),
        [
            capture("talk", lines(triton("Hello there", -0.125, -0.375)), text="Hello there", model="ensemble"),
            capture("talk", sse(triton("Hello", -0.125), triton(" there", -0.375), triton("!", -0.625)), stream=True,
                    text="Hello there!", usage=None),
            capture("full", lines({"error": "the queue is full"}), status=503, error="server"),
        ],
    ),
    "replicate": (
        Replicate(),
        [
            capture("talk", lines(PREDICTION), text="Once upon a time", finish="stop", id="p-1"),
            capture("tale", b"event: output\ndata: Once upon\n\nevent: output\ndata:  a time\n\nevent: done\ndata: {}\n\n", stream=True,
                    text="Once upon a time", finish="stop"),
            capture("numbers", b"event: output\ndata: 4\n\nevent: output\ndata: 2\n\nevent: done\ndata: {}\n\n", stream=True, text="42"),
            capture("lost", b"event: output\ndata: Half\n\nevent: error\ndata: worker lost\n\nevent: done\ndata: {\"reason\":\"error\"}\n\n",
                    stream=True, error="server", text="Half"),
            capture("failed", lines({**PREDICTION, "status": "failed", "output": None, "error": "the worker ran out of memory"}),
                    error="server", finish="error"),
            capture("stopped", lines({**PREDICTION, "status": "canceled"}), finish="cancelled"),
            capture("running", lines({**PREDICTION, "status": "processing", "output": None}), raises="UnknownEventError"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
def test_a_wire_of_a_real_vendor_passes_without_an_exception(wire: str) -> None:
    plugin, captures = WIRES[wire]
    registry = Registry(installed=[], environ={})
    registry.register(plugin, wire)
    mapper = registry.mapper(wire)
    found = [str(problem) for one in captures for problem in check_capture(mapper, one, sample=12)]
    if wire != "triton":  # two exchanges
        found += [str(problem) for pair in pairs(captures) for problem in check_pair(mapper, *pair)]
    assert found == []


class Careless(YandexGPT):
    """Takes any spelling of a number."""

    def number(self, usage: dict[str, Any], key: str) -> int | None:
        text = accept_string(usage, key)
        return None if text is None else int(text)


def test_a_text_of_digits_has_one_spelling() -> None:
    registry = Registry(installed=[], environ={})
    registry.register(Careless(), "careless")
    found = check_capture(registry.mapper("careless"), WIRES["yandexgpt"][1][0], checks=["digits kept"])
    assert "the text '012' is read as 12" in [problem.message for problem in found]


class Silent(DashScope):
    """Says something else than the provider."""

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return ErrorInfo(ErrorKind.RATE_LIMIT, "failed", True, status, None, body)


@pytest.mark.parametrize(
    ("plugin", "wire", "case", "message"),
    [
        (Silent(), "dashscope2", "busy", "the message 'failed' is not a text of the payload"),
    ],
)
def test_a_message_and_a_declaration_are_held_to_the_payload(
    plugin: Any, wire: str, case: str, message: str
) -> None:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "wrong")
    (one,) = [one for one in WIRES[wire][1] if one.case == case]
    found = check_capture(registry.mapper("wrong"), one, sample=12)
    assert message in [problem.message for problem in found]
