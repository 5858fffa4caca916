"""MiniMax: OpenAI's dialect with errors in an answer of status 200, and reasoning in up to three places.

Facts: ``tests/captures/minimax/README.md`` names the public page of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from crosswalk.plugins import (
    Access,
    ErrorInfo,
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    SegmentType,
    TrailingContentError,
    VendorErrors,
    WayBack,
    accept_objects,
    error_delta,
    error_info,
    take_error,
    take_same,
)
from crosswalk_openai import ChatDialect

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest


_ERRORS = VendorErrors("crosswalk_openai", "minimax")
"""Its errors, by ``base_resp.status_code``."""
_FLAG_KEYS = ("input_sensitive", "output_sensitive")
_BEGIN_TAG, _END_TAG = "<think>", "</think>"


class _Answer:
    """The state of one answer.

    Attributes:
        thinking: by choice, whether its content is inside the tags at present. A choice with white space alone is missing.
        is_sensitive: whether the moderation has found anything in the input or the output.
    """

    def __init__(self) -> None:
        self.thinking: dict[int, bool] = {}
        self.is_sensitive = False


class MiniMax(ChatDialect):
    """Reads and asks MiniMax's chat completions."""

    title: ClassVar[str] = "MiniMax"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/minimax.toml"
    documentation: ClassVar[str | None] = "https://platform.minimax.io/docs/api-reference/text-openai-api"
    access: ClassVar[Access | None] = Access.by_name("https://api.minimax.io/v1", "MINIMAX")
    style: ClassVar[Mapping[str, Any]] = {
        "options": {"max_tokens": "max_completion_tokens"},
        "takes_empty": False,
    }
    speaks: ClassVar[tuple[str, ...]] = ("anthropic", "openai_responses")
    endpoints: ClassVar[tuple[str, ...]] = ("/v1/text/chatcompletion_v2", "/v1/chat/completions")
    way_back: ClassVar[WayBack] = WayBack(
        takes_reasoning=True, shows_pictures=True, moves_system=True, names_speakers=True
    )
    marks: ClassVar[tuple[str, ...]] = ("base_resp", "input_sensitive")
    # Content may begin and end reasoning, so a piece of it is not always text.
    text_paths: ClassVar[tuple[str, ...]] = ()

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: reasoning comes apart from the text, and goes back in its details."""
        from crosswalk_openai.requests import add_details, with_one_system_message

        http_request = self.built(request, more=add_details, arrange=with_one_system_message, reasoning=None)
        http_request.body["reasoning_split"] = True
        return http_request

    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: an error has no choices, but it has the status that only MiniMax writes."""
        if isinstance(event, dict) and _status_of(event) is not None:
            return Recognition.CERTAIN
        return super().recognizes(event)

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: a status other than 0 is an error, after what the event says."""
        if type(event) is not dict:
            return super().map_delta(event, state)
        has_failed = bool(_status_of(event))
        if has_failed and not event.get("choices"):
            usage_fields = {key: event[key] for key in ("usage",) if key in event}
            failure = take_error(event, self.map_error(None, event))
            event.update(usage_fields)  # the tokens of a failure count all the same
            return (failure,)
        answer = state.own(_Answer)
        answer.is_sensitive |= any(event.get(flag) is True for flag in _FLAG_KEYS)
        _take_repeated(event, state)
        deltas = super().map_delta(event, state)
        if has_failed:
            failure = error_delta(self.map_error(None, {"base_resp": event.pop("base_resp")}))
            return chain(deltas, (failure,))
        return deltas

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        """The deltas of one choice, with the content inside the tags as reasoning.

        Severely inappropriate content gives an empty answer, which ends with ``content_filter``.
        """
        take_same(part, "role", "")
        answer = state.own(_Answer)
        content = part.get("content")
        if type(content) is str and content and "reasoning" not in part:
            thought, text = _split(content, index, answer.thinking)
            if thought is not None:
                part["reasoning"] = thought
                part["content"] = text
        is_silent = not state.has_spoken(index)
        for delta in super().choice_deltas(choice, part, index, state, whole=whole):
            if delta.raw_finish_reason is None:
                is_silent = False
            elif answer.is_sensitive and is_silent:
                delta = attrs.evolve(delta, finish_reason=FinishReason.CONTENT_FILTER)
            yield delta

    def map_error(self, status: int | None, body: Any) -> ErrorInfo:
        """Read the error of ``base_resp``, or one in OpenAI's form."""
        code = _status_of(body) if isinstance(body, dict) else None
        if not code:
            return error_info(status, body)
        info = error_info(status, {"message": body["base_resp"].get("status_msg"), "code": str(code)})
        return attrs.evolve(_ERRORS.refined(info), code=str(code), raw=body)


def _status_of(event: dict[str, Any]) -> int | None:
    """The status in *event*: 0 for success, ``None`` where it has no status."""
    base = event.get("base_resp")
    status = base.get("status_code") if isinstance(base, dict) else None
    return status if type(status) is int else None


def _split(content: str, choice: int, thinking: dict[int, bool]) -> tuple[str | None, str]:
    """The reasoning and the text of a piece of *content*. The reasoning is ``None`` outside the tags.

    Each tag is one token of MiniMax's models, so it comes in one piece. White space may come before it, and is text.
    """
    leading_space = ""
    if choice not in thinking:
        stripped = content.lstrip()
        if not stripped:
            return None, content
        thinking[choice] = stripped.startswith(_BEGIN_TAG)
        if thinking[choice]:
            leading_space, content = content[: -len(stripped)], stripped.removeprefix(_BEGIN_TAG)
    if thinking[choice]:
        thought, end_tag, text = content.partition(_END_TAG)
        thinking[choice] = not end_tag
        return thought, leading_space + text
    return None, content


def _take_repeated(event: dict[str, Any], state: MappingState) -> None:
    """Take from the last event of a stream the whole message, which says again what the pieces have said.

    Raises:
        TrailingContentError: the message says something else.
    """
    for number, choice in enumerate(accept_objects(event, "choices")):
        index, message = choice.get("index", number), choice.get("message")
        if type(index) is not int or type(message) is not dict or not state.has_spoken(index):
            continue
        draft = state.choice(index)
        text, reasoning = draft.joined(SegmentType.TEXT), draft.joined(SegmentType.REASONING)
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.text(partial=True)},
            }
            for call in state.tool_calls(index)
        ]
        content = message.get("content")
        is_tagged = type(content) is str and _split(content, index, {}) == (reasoning, text)
        are_same = (
            take_same(message, "content", content if is_tagged else text)
            and take_same(message, "reasoning_content", reasoning)
            and take_same(message, "tool_calls", calls)
        )
        if not are_same:
            raise TrailingContentError("the whole message at the end differs from its pieces")
        for detail in accept_objects(message, "reasoning_details"):
            take_same(detail, "text", reasoning)
        choice["delta"] = {}  # what else the message says stays in it, alongside


plugin = MiniMax()
