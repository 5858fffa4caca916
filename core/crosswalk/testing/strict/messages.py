"""The rules of Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from crosswalk.testing.exchange import Answer
from crosswalk.testing.strict.rules import (
    ServerRule,
    StrictRefusal,
    StrictRequest,
    StrictRules,
    objects,
    text_at,
)
from crosswalk.wire.messages import is_server_call

_ID_PATTERN: Final = re.compile("[a-zA-Z0-9_-]+")
_THINKING_TYPES: Final = ("thinking", "redacted_thinking")


def _messages(request: StrictRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    """The role and the blocks of each message; a text is one block."""
    messages = []
    for message in request.items("messages"):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
        messages.append((text_at(message, "role"), blocks))
    return messages


def _blocks(request: StrictRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each block with the path that errors call it by."""
    for number, (_, blocks) in enumerate(_messages(request)):
        for position, block in enumerate(blocks):
            yield f"messages.{number}.content.{position}", block


def _ids(blocks: list[dict[str, Any]], type: str, key: str) -> list[str]:
    return [text_at(block, key) for block in blocks if block.get("type") == type]


def _is_server_result(block: dict[str, Any]) -> bool:
    return text_at(block, "type").endswith("_tool_result")


def _roles(request: StrictRequest) -> Iterator[StrictRefusal]:
    for role, _ in _messages(request):
        if role not in ("user", "assistant"):
            yield StrictRefusal(
                f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, '
                'not "system" as an input message role.'
            )


def _messages_say_something(request: StrictRequest) -> Iterator[StrictRefusal]:
    messages = _messages(request)
    if not messages:
        yield StrictRefusal("messages: at least one message is required")
    for number, (role, blocks) in enumerate(messages):
        if not blocks and not (role == "assistant" and number == len(messages) - 1):
            yield StrictRefusal(
                f"messages.{number}: all messages must have non-empty content except for the optional final "
                "assistant message"
            )


def _texts_are_not_blank(request: StrictRequest) -> Iterator[StrictRefusal]:
    for _, block in _blocks(request):
        if block.get("type") == "text" and not text_at(block, "text").strip():
            demand = "contain non-whitespace text" if block.get("text") else "be non-empty"
            yield StrictRefusal(f"messages: text content blocks must {demand}")


def _calls_have_results(request: StrictRequest) -> Iterator[StrictRefusal]:
    messages = _messages(request)
    for number, (_, blocks) in enumerate(messages):
        next_blocks = messages[number + 1][1] if number + 1 < len(messages) else []
        result_ids = _ids(next_blocks, "tool_result", "tool_use_id")
        missing_ids = [id for id in _ids(blocks, "tool_use", "id") if id not in result_ids]
        if missing_ids:
            yield StrictRefusal(
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing_ids)}. Each `tool_use` block must have a corresponding `tool_result` block in "
                "the next message."
            )


def _results_have_calls(request: StrictRequest) -> Iterator[StrictRefusal]:
    messages = _messages(request)
    for number, (_, blocks) in enumerate(messages):
        call_ids = _ids(messages[number - 1][1], "tool_use", "id") if number else []
        for position, block in enumerate(blocks):
            if block.get("type") == "tool_result" and text_at(block, "tool_use_id") not in call_ids:
                yield StrictRefusal(
                    f"messages.{number}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block.get('tool_use_id')}. Each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message."
                )


def _one_result_for_a_call(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, (_, blocks) in enumerate(_messages(request)):
        result_ids = _ids(blocks, "tool_result", "tool_use_id")
        for id in dict.fromkeys(id for id in result_ids if result_ids.count(id) > 1):
            yield StrictRefusal(
                f"messages.{number}.content: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {id}"
            )


def _ids_are_unique(request: StrictRequest) -> Iterator[StrictRefusal]:
    used_ids: set[str] = set()
    for path, block in _blocks(request):
        if block.get("type") == "tool_use":
            if text_at(block, "id") in used_ids:
                yield StrictRefusal(f"{path}: `tool_use` ids must be unique")
            used_ids.add(text_at(block, "id"))


def _ids_fit(request: StrictRequest) -> Iterator[StrictRefusal]:
    for path, block in _blocks(request):
        if block.get("type") == "tool_use" and not _ID_PATTERN.fullmatch(text_at(block, "id")):
            yield StrictRefusal(f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _pending(request: StrictRequest) -> Iterator[tuple[int, dict[str, Any], bool]]:
    """Each call of a server tool without a result: its message, its block, and whether the server may go on with it.

    It may while nothing follows but the results of the client's own tools.
    """
    messages = _messages(request)
    for number, (_, blocks) in enumerate(messages):
        for position, block in enumerate(blocks):
            if not is_server_call(text_at(block, "type")):
                continue
            later_blocks = [
                *blocks[position:],
                *(one for _, other_blocks in messages[number + 1 :] for one in other_blocks),
            ]
            if any(
                _is_server_result(one) and one.get("tool_use_id") == block.get("id") for one in later_blocks
            ):
                continue
            following_blocks = [
                (role, one) for role, other_blocks in messages[number + 1 :] for one in other_blocks
            ]
            may_go_on = all(
                role == "assistant" or one.get("type") == "tool_result" for role, one in following_blocks
            )
            yield number, block, may_go_on


def _server_calls_have_results(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, block, may_go_on in _pending(request):
        if not may_go_on:
            name = block.get("name")
            yield StrictRefusal(
                f"messages.{number}: `{name}` tool use with id `{block.get('id')}` was found without a "
                f"corresponding `{name}_tool_result` block"
            )


def _server_results_have_calls(request: StrictRequest) -> Iterator[StrictRefusal]:
    call_ids: list[str] = []
    for path, block in _blocks(request):
        if is_server_call(text_at(block, "type")):
            call_ids.append(text_at(block, "id"))
        elif _is_server_result(block) and text_at(block, "tool_use_id") not in call_ids:
            type = block.get("type")
            yield StrictRefusal(
                f"{path}: unexpected `tool_use_id` found in `{type}` blocks: {block.get('tool_use_id')}. Each "
                f"`{type}` block must have a corresponding `server_tool_use` block before it."
            )


def _pending_execution_names_its_container(request: StrictRequest) -> Iterator[StrictRefusal]:
    pending_blocks = [block for _, block, may_go_on in _pending(request) if may_go_on]
    messages = _messages(request)
    has_results = bool(messages) and any(one.get("type") == "tool_result" for one in messages[-1][1])
    if pending_blocks and has_results and not request.body.get("container"):
        yield StrictRefusal(
            "container_id is required when there are pending tool uses generated by code execution with tools."
        )


def _thinking_is_signed(request: StrictRequest) -> Iterator[StrictRefusal]:
    for path, block in _blocks(request):
        if block.get("type") == "thinking" and "signature" not in block:
            yield StrictRefusal(f"{path}.thinking.signature: Field required")


def _signatures_are_its_own(request: StrictRequest) -> Iterator[StrictRefusal]:
    for path, block in _blocks(request):
        for type, key in (("thinking", "signature"), ("redacted_thinking", "data")):
            if block.get("type") == type and key in block and not request.issued.has(block[key]):
                yield StrictRefusal(f"{path}: Invalid `{key}` in `{type}` block")


def _thinking_comes_before_its_calls(request: StrictRequest) -> Iterator[StrictRefusal]:
    thinking = request.body.get("thinking")
    messages = _messages(request)
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled" or len(messages) < 2:
        return
    blocks = messages[-2][1]
    has_results = any(one.get("type") == "tool_result" for one in messages[-1][1])
    if has_results and blocks and blocks[0].get("type") not in _THINKING_TYPES:
        yield StrictRefusal(
            f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{blocks[0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with "
            "a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def _error(refusal: StrictRefusal) -> Answer:
    error = {"type": "invalid_request_error", "message": refusal.message}
    return Answer.of_json(
        {"type": "error", "error": error, "request_id": "req_strict"}, status=refusal.status
    )


ANTHROPIC: Final = StrictRules(
    "anthropic",
    "/v1/messages",
    (
        ServerRule(
            "roles are user and assistant", "https://github.com/ianarawjo/ChainForge/issues/271", _roles
        ),
        ServerRule(
            "messages are not empty",
            "https://github.com/anthropics/claude-code/issues/6774",
            _messages_say_something,
        ),
        ServerRule(
            "texts are not blank",
            "https://github.com/anthropics/claude-code/issues/23440",
            _texts_are_not_blank,
        ),
        ServerRule(
            "calls have results", "https://github.com/anthropics/claude-code/issues/8612", _calls_have_results
        ),
        ServerRule(
            "results have calls",
            "https://github.com/anthropics/claude-code/issues/13460",
            _results_have_calls,
        ),
        ServerRule(
            "a call has one result",
            "https://github.com/aaif-goose/goose/pull/9133",
            _one_result_for_a_call,
        ),
        ServerRule("ids are unique", "https://github.com/anomalyco/opencode/issues/1279", _ids_are_unique),
        ServerRule("ids fit the pattern", "https://github.com/maximhq/bifrost/issues/5097", _ids_fit),
        ServerRule(
            "server calls have results",
            "https://github.com/AnswerDotAI/lisette/issues/108",
            _server_calls_have_results,
        ),
        ServerRule(
            "server results have calls",
            "https://github.com/anthropics/claude-code/issues/64383",
            _server_results_have_calls,
        ),
        ServerRule(
            "a pending execution names its container",
            "https://github.com/anthropics/anthropic-sdk-typescript/issues/1114",
            _pending_execution_names_its_container,
        ),
        ServerRule(
            "thinking is signed",
            "https://github.com/justlovemaki/AIClient2API/issues/437",
            _thinking_is_signed,
        ),
        ServerRule(
            "signatures are Anthropic's own",
            "https://github.com/anthropics/anthropic-sdk-csharp/issues/126",
            _signatures_are_its_own,
        ),
        ServerRule(
            "thinking comes before its calls",
            "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
            _thinking_comes_before_its_calls,
        ),
    ),
    _error,
)
