"""The rules of the clouds' own APIs: Amazon Bedrock's Converse, and Gemini."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import attrs

from crosswalk.testing.exchange import Answer
from crosswalk.testing.strict.rules import (
    ServerRule,
    StrictRefusal,
    StrictRequest,
    StrictRules,
    objects,
    text_at,
)

# --------------------------------------------------------------------------------- bedrock
# The rules of Amazon Bedrock's Converse.


_ID_PATTERN: Final = re.compile("[a-zA-Z0-9_.:-]{1,64}")


def _messages(request: StrictRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(text_at(one, "role"), objects(one.get("content"))) for one in request.items("messages")]


def _ids(blocks: list[dict[str, Any]], key: str) -> list[str]:
    """The ids of the blocks that have *key*, which is ``toolUse`` or ``toolResult``."""
    return [text_at(one[key], "toolUseId") for one in blocks if isinstance(one.get(key), dict)]


def _starts_with_the_user(request: StrictRequest) -> Iterator[StrictRefusal]:
    messages = _messages(request)
    if not messages or messages[0][0] != "user":
        yield StrictRefusal(
            "A conversation must start with a user message. Try again with a conversation that starts with a "
            "user message."
        )


def _roles_alternate(request: StrictRequest) -> Iterator[StrictRefusal]:
    for (previous_role, _), (role, _) in pairwise(_messages(request)):
        if role == previous_role:
            yield StrictRefusal(
                "A conversation must alternate between user and assistant roles. Make sure the conversation "
                "alternates between user and assistant roles and try again."
            )


def _content_is_not_empty(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, (_, blocks) in enumerate(_messages(request)):
        if not blocks:
            yield StrictRefusal(
                f"The content field in the Message object at messages.{number} is empty. Add a ContentBlock "
                "object to the content field and try again."
            )


def _texts_are_not_blank(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, (_, blocks) in enumerate(_messages(request)):
        for position, block in enumerate(blocks):
            if "text" in block and not text_at(block, "text").strip():
                yield StrictRefusal(
                    f"The text field in the ContentBlock object at messages.{number}.content.{position} is blank. "
                    "Add text to the text field, and try again."
                )


def _calls_have_results(request: StrictRequest) -> Iterator[StrictRefusal]:
    messages = [*_messages(request), ("user", [])]
    for number, ((_, blocks), (_, next_blocks)) in enumerate(pairwise(messages)):
        result_ids = _ids(next_blocks, "toolResult")
        missing_ids = [
            id for id in _ids(blocks, "toolUse") if id not in result_ids + _ids(blocks, "toolResult")
        ]
        if missing_ids:
            yield StrictRefusal(
                f"Expected toolResult blocks at messages.{number + 1}.content for the following Ids: "
                f"{', '.join(missing_ids)}"
            )


def _results_have_calls(request: StrictRequest) -> Iterator[StrictRefusal]:
    previous_blocks: list[dict[str, Any]] = []
    for number, (_, blocks) in enumerate(_messages(request)):
        call_ids = _ids(previous_blocks, "toolUse") + _ids(blocks, "toolUse")
        if any(id not in call_ids for id in _ids(blocks, "toolResult")):
            yield StrictRefusal(
                f"The number of toolResult blocks at messages.{number}.content exceeds the number of toolUse "
                "blocks of previous turn."
            )
        previous_blocks = blocks


def _ids_are_unique(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, (_, blocks) in enumerate(_messages(request)):
        for key in ("toolUse", "toolResult"):
            ids = _ids(blocks, key)
            duplicate_ids = dict.fromkeys(id for id in ids if ids.count(id) > 1)
            if duplicate_ids:
                yield StrictRefusal(
                    f"The {key} blocks at messages.{number}.content contain duplicate Ids: {', '.join(duplicate_ids)}"
                )


def _ids_fit(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, (_, blocks) in enumerate(_messages(request)):
        for key in ("toolUse", "toolResult"):
            for id in _ids(blocks, key):
                if not _ID_PATTERN.fullmatch(id):
                    yield StrictRefusal(
                        f"1 validation error detected: Value '{id}' at 'messages.{number}.content.{key}.toolUseId' "
                        "failed to satisfy constraint: Member must satisfy regular expression pattern: "
                        "[a-zA-Z0-9_.:-]+"
                    )


def _calls_have_declared_tools(request: StrictRequest) -> Iterator[StrictRefusal]:
    has_calls = any(
        "toolUse" in one or "toolResult" in one for _, blocks in _messages(request) for one in blocks
    )
    if has_calls and not request.body.get("toolConfig"):
        yield StrictRefusal(
            "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        )


def _reasoning(request: StrictRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each block of reasoning, with its path."""
    for number, (_, blocks) in enumerate(_messages(request)):
        for position, block in enumerate(blocks):
            if isinstance(block.get("reasoningContent"), dict):
                yield f"messages.{number}.content.{position}", block["reasoningContent"]


def _reasoning_of_claude_is_signed(request: StrictRequest) -> Iterator[StrictRefusal]:
    for path, reasoning in _reasoning(request):
        reasoning_text = reasoning.get("reasoningText")
        if (
            "anthropic" in request.path
            and isinstance(reasoning_text, dict)
            and "signature" not in reasoning_text
        ):
            yield StrictRefusal(f"{path}.thinking.signature: Field required")


def _bedrock_signatures_are_its_own(request: StrictRequest) -> Iterator[StrictRefusal]:
    for path, reasoning in _reasoning(request):
        reasoning_text = reasoning.get("reasoningText")
        signature = reasoning_text.get("signature") if isinstance(reasoning_text, dict) else None
        if signature is not None and not request.issued.has(signature):
            yield StrictRefusal(f"{path}: Invalid `signature` in `thinking` block")
        redacted_content = reasoning.get("redactedContent")
        if redacted_content is not None and not request.issued.has(redacted_content):
            yield StrictRefusal(f"{path}: Invalid `data` in `redacted_thinking` block")


def _bedrock_error(refusal: StrictRefusal) -> Answer:
    answer = Answer.of_json({"message": refusal.message}, status=refusal.status)
    return attrs.evolve(answer, headers={**answer.headers, "x-amzn-ErrorType": "ValidationException"})


BEDROCK: Final = StrictRules(
    "bedrock",
    "converse",
    (
        ServerRule(
            "the user begins",
            "https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-call.html",
            _starts_with_the_user,
        ),
        ServerRule(
            "roles alternate", "https://github.com/langchain-ai/langchain-aws/issues/192", _roles_alternate
        ),
        ServerRule(
            "content is not empty", "https://github.com/earendil-works/pi/pull/3443", _content_is_not_empty
        ),
        ServerRule(
            "texts are not blank",
            "https://github.com/aws-samples/bedrock-engineer/issues/8",
            _texts_are_not_blank,
        ),
        ServerRule("calls have results", "https://github.com/agno-agi/agno/issues/6698", _calls_have_results),
        ServerRule(
            "results have calls",
            "https://github.com/langgenius/dify-official-plugins/issues/765",
            _results_have_calls,
        ),
        ServerRule("ids are unique", "https://github.com/BerriAI/litellm/pull/20049", _ids_are_unique),
        ServerRule(
            "ids fit the pattern",
            "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html",
            _ids_fit,
        ),
        ServerRule(
            "calls have declared tools",
            "https://github.com/langgenius/dify/issues/17545",
            _calls_have_declared_tools,
        ),
        ServerRule(
            "reasoning of Claude is signed",
            "https://github.com/maximhq/bifrost/pull/6942",
            _reasoning_of_claude_is_signed,
        ),
        ServerRule(
            "signatures are its own",
            "https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-call.html",
            _bedrock_signatures_are_its_own,
        ),
    ),
    _bedrock_error,
)


# ---------------------------------------------------------------------------------- gemini
# The rules of the Gemini API.


_PLACEHOLDER_WORDS: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_PLACEHOLDERS: Final = frozenset(
    text for word in _PLACEHOLDER_WORDS for text in (word, base64.b64encode(word.encode()).decode())
)
"""The values that Google documents for calls of other models, plain and as base64."""
_SIGNING_MODEL: Final = re.compile(r"/models/gemini-(?![12]\.)")
"""The models that refuse a call of this turn without a signature: all of the family but the older ones."""


def _contents(request: StrictRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(text_at(one, "role") or "user", objects(one.get("parts"))) for one in request.items("contents")]


def _count(parts: list[dict[str, Any]], key: str) -> int:
    return sum(key in part for part in parts)


def _roles(request: StrictRequest) -> Iterator[StrictRefusal]:
    for role, _ in _contents(request):
        if role not in ("user", "model"):
            yield StrictRefusal("Please use a valid role: user, model.")


def _parts_are_not_empty(request: StrictRequest) -> Iterator[StrictRefusal]:
    contents = _contents(request)
    if not contents:
        yield StrictRefusal("* GenerateContentRequest.contents: contents is not specified")
    for number, (_, parts) in enumerate(contents):
        if not parts:
            yield StrictRefusal(
                f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty."
            )


def _calls_follow_the_user(request: StrictRequest) -> Iterator[StrictRefusal]:
    contents = _contents(request)
    for number, (_, parts) in enumerate(contents):
        if _count(parts, "functionCall") and (not number or contents[number - 1][0] != "user"):
            yield StrictRefusal(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )


def _responses_follow_calls(request: StrictRequest) -> Iterator[StrictRefusal]:
    contents = _contents(request)
    for number, (_, parts) in enumerate(contents):
        previous_parts = contents[number - 1][1] if number else []
        if _count(parts, "functionResponse") and not _count(previous_parts, "functionCall"):
            yield StrictRefusal(
                "Please ensure that function response turn comes immediately after a function call turn."
            )


def _as_many_responses(request: StrictRequest) -> Iterator[StrictRefusal]:
    contents = _contents(request)
    for number, (_, parts) in enumerate(contents):
        call_count = _count(parts, "functionCall")
        next_parts = contents[number + 1][1] if number + 1 < len(contents) else []
        if call_count and _count(next_parts, "functionResponse") != call_count:
            yield StrictRefusal(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )


def _calls_of_this_turn_are_signed(request: StrictRequest) -> Iterator[StrictRefusal]:
    if not _SIGNING_MODEL.search(request.path):
        return
    contents = _contents(request)
    question_numbers = [
        number
        for number, (role, parts) in enumerate(contents)
        if role == "user" and any("functionResponse" not in part for part in parts)
    ]
    for number in range(question_numbers[-1] if question_numbers else 0, len(contents)):
        call_parts = [part for part in contents[number][1] if "functionCall" in part]
        if call_parts and "thoughtSignature" not in call_parts[0]:
            call = call_parts[0]["functionCall"]
            name = call.get("name") if isinstance(call, dict) else None
            yield StrictRefusal(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools "
                "to work correctly, and missing thought_signature may lead to degraded model performance. "
                f"Additional data, function call `default_api:{name}` , position {number + 1}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )


def _gemini_signatures_are_its_own(request: StrictRequest) -> Iterator[StrictRefusal]:
    for _, parts in _contents(request):
        for part in parts:
            signature = part.get("thoughtSignature")
            if (
                signature is None
                or text_at(part, "thoughtSignature") in _PLACEHOLDERS
                or request.issued.has(signature)
            ):
                continue
            yield StrictRefusal("Corrupted thought signature.")


def _gemini_error(refusal: StrictRefusal) -> Answer:
    error = {"code": refusal.status, "message": refusal.message, "status": "INVALID_ARGUMENT"}
    return Answer.of_json({"error": error}, status=refusal.status)


GEMINI: Final = StrictRules(
    "gemini",
    "enerateContent",  # generateContent and streamGenerateContent
    (
        ServerRule("roles are user and model", "https://ai.google.dev/api/caching#Content", _roles),
        ServerRule("parts are not empty", "https://github.com/vercel/ai/issues/3775", _parts_are_not_empty),
        ServerRule(
            "calls follow the user",
            "https://github.com/google-gemini/gemini-cli/issues/11814",
            _calls_follow_the_user,
        ),
        ServerRule(
            "responses follow calls",
            "https://github.com/langchain-ai/langchain/issues/27799",
            _responses_follow_calls,
        ),
        ServerRule(
            "as many responses as calls",
            "https://github.com/google-gemini/gemini-cli/issues/16543",
            _as_many_responses,
        ),
        ServerRule(
            "calls of the current turn are signed",
            "https://ai.google.dev/gemini-api/docs/thought-signatures",
            _calls_of_this_turn_are_signed,
        ),
        ServerRule(
            "signatures are Google's own",
            "https://github.com/google-gemini/gemini-cli/issues/13467",
            _gemini_signatures_are_its_own,
        ),
    ),
    _gemini_error,
)
