"""The rules of the Gemini API."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, Final

from crosswalk.testing.exchange import Answer
from crosswalk.testing.strict.rules import Refusal, ServerRule, StrictRequest, StrictRules, objects, text_at
from crosswalk.wire.gemini import needs_signatures

_WORDS: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_PLACEHOLDERS: Final = frozenset(
    text for word in _WORDS for text in (word, base64.b64encode(word.encode()).decode())
)
"""The values that Google documents for calls of other models, plain and as base64."""
_MODEL: Final = re.compile(r"/models/([^/:]+)")


def _contents(request: StrictRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(text_at(one, "role") or "user", objects(one.get("parts"))) for one in request.items("contents")]


def _count(parts: list[dict[str, Any]], key: str) -> int:
    return sum(key in part for part in parts)


def _roles(request: StrictRequest) -> Iterator[Refusal]:
    for role, _ in _contents(request):
        if role not in ("user", "model"):
            yield Refusal("Please use a valid role: user, model.")


def _parts_are_not_empty(request: StrictRequest) -> Iterator[Refusal]:
    contents = _contents(request)
    if not contents:
        yield Refusal("* GenerateContentRequest.contents: contents is not specified")
    for number, (_, parts) in enumerate(contents):
        if not parts:
            yield Refusal(
                f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty."
            )


def _calls_follow_the_user(request: StrictRequest) -> Iterator[Refusal]:
    contents = _contents(request)
    for number, (_, parts) in enumerate(contents):
        if _count(parts, "functionCall") and (not number or contents[number - 1][0] != "user"):
            yield Refusal(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )


def _responses_follow_calls(request: StrictRequest) -> Iterator[Refusal]:
    contents = _contents(request)
    for number, (_, parts) in enumerate(contents):
        before = contents[number - 1][1] if number else []
        if _count(parts, "functionResponse") and not _count(before, "functionCall"):
            yield Refusal(
                "Please ensure that function response turn comes immediately after a function call turn."
            )


def _as_many_responses(request: StrictRequest) -> Iterator[Refusal]:
    contents = _contents(request)
    for number, (_, parts) in enumerate(contents):
        calls = _count(parts, "functionCall")
        after = contents[number + 1][1] if number + 1 < len(contents) else []
        if calls and _count(after, "functionResponse") != calls:
            yield Refusal(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )


def _calls_of_this_turn_are_signed(request: StrictRequest) -> Iterator[Refusal]:
    model = _MODEL.search(request.path)
    if model is None or not needs_signatures(model[1]):
        return
    contents = _contents(request)
    asks = [
        number
        for number, (role, parts) in enumerate(contents)
        if role == "user" and any("functionResponse" not in part for part in parts)
    ]
    for number in range(asks[-1] if asks else 0, len(contents)):
        calls = [part for part in contents[number][1] if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            call = calls[0]["functionCall"]
            name = call.get("name") if isinstance(call, dict) else None
            yield Refusal(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools "
                "to work correctly, and missing thought_signature may lead to degraded model performance. "
                f"Additional data, function call `default_api:{name}` , position {number + 1}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )


def _signatures_are_its_own(request: StrictRequest) -> Iterator[Refusal]:
    for _, parts in _contents(request):
        for part in parts:
            signature = part.get("thoughtSignature")
            if (
                signature is None
                or text_at(part, "thoughtSignature") in _PLACEHOLDERS
                or request.issued.has(signature)
            ):
                continue
            yield Refusal("Corrupted thought signature.")


def _error(refusal: Refusal) -> Answer:
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
            _signatures_are_its_own,
        ),
    ),
    _error,
)
