"""A model's answer, written in the format that a request asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

from crosswalk.convert import WireForm, convert, convert_stream
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.message import ToolCall, ToolCallDelta
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason

_MEDIA_TYPES = {WireForm.OLLAMA: "application/x-ndjson", WireForm.OLLAMA_GENERATE: "application/x-ndjson"}


@attrs.frozen
class ModelAnswer:
    """A model's answer.

    Attributes:
        text: its text. A stream has a piece for each word.
        calls: its tool calls.
        usage: its tokens.
    """

    text: str
    calls: tuple[ToolCall, ...]
    usage: UsageInfo

    def whole(self, path: str) -> bytes:
        """Return the body of a whole answer in the format of the endpoint at *path*, or in that of Chat Completions."""
        body: bytes = convert(ChatResponse.from_deltas(self._deltas()), _form(path)).value
        return body

    def streamed(self, path: str) -> tuple[tuple[bytes, ...], str]:
        """Return the events of a stream in that format, and their media type."""
        form = _form(path)
        events: Iterable[bytes] = convert_stream(self._deltas(), form, model="model")
        return tuple(events), _MEDIA_TYPES.get(form, "text/event-stream")

    def _deltas(self) -> Iterator[ResponseDelta]:
        words = re.findall(r"\S+\s*|\s+", self.text)
        index = 0
        for index, word in enumerate(words, 1):
            yield ResponseDelta(index - 1, content_delta=word)
        for number, call in enumerate(self.calls):
            fragment = ToolCallDelta(number, call.id, call.name, call.arguments)
            yield ResponseDelta(index + number, tool_call_delta=fragment)
        reason = FinishReason.TOOL_CALLS if self.calls else FinishReason.STOP
        yield ResponseDelta(index + len(self.calls), finish_reason=reason, usage=self.usage)


def _form(path: str) -> WireForm:
    forms = (form for form in WireForm if path.endswith(form.paths))
    return next(forms, WireForm.OPENAI_CHAT)
