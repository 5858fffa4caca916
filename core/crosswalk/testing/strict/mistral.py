"""The rules of Mistral's chat endpoint, whose validator of requests is public: ``mistral_common``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from crosswalk.testing.exchange import Answer
from crosswalk.testing.strict.chat import ENDPOINT, HAS_MESSAGES, call_ids, messages_of, rounds
from crosswalk.testing.strict.rules import Refusal, ServerRule, StrictRequest, StrictRules, text_at

_ID: Final = re.compile("[a-zA-Z0-9]{9}")
_AFTER: Final = {
    "system": ("system", "user", "assistant"),
    "user": ("system", "user", "assistant"),
    "assistant": ("user", "assistant", "tool"),
    "tool": ("assistant", "tool"),
}
"""The roles that Mistral takes after each role."""
_OTHERS_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers of the same dialect have reasoning."""


def _roles_in_order(request: StrictRequest) -> Iterator[Refusal]:
    for (_, before), (_, message) in pairwise(messages_of(request)):
        first, second = text_at(before, "role"), text_at(message, "role")
        if second not in _AFTER.get(first, ()):
            yield _order(f"Unexpected role '{second}' after role '{first}'")


def _ends_with_a_question(request: StrictRequest) -> Iterator[Refusal]:
    last = [*messages_of(request)][-1:]
    if last and last[0][1].get("role") == "assistant" and last[0][1].get("prefix") is not True:
        yield _order(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        )


def _as_many_results(request: StrictRequest) -> Iterator[Refusal]:
    for _, calls, results in rounds(request):
        if len(calls) != len(results):
            yield _order("Not the same number of function calls and responses")


def _ids(request: StrictRequest) -> Iterator[Refusal]:
    for _, message in messages_of(request):
        results = [text_at(message, "tool_call_id")] if "tool_call_id" in message else []
        for id in (*call_ids(message), *results):
            if not _ID.fullmatch(id):
                message_ = f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
                yield Refusal(message_, code="3280", kind="invalid_function_call")


def _takes_no_other_fields(request: StrictRequest) -> Iterator[Refusal]:
    for number, message in messages_of(request):
        for name in _OTHERS_FIELDS:
            if name not in message:
                continue
            location = f"body.messages.{number}.{message.get('role')}.{name}"
            yield Refusal(f"extra_forbidden: {location}: Extra inputs are not permitted", status=422)


def _order(message: str) -> Refusal:
    return Refusal(message, code="3230", kind="invalid_request_message_order")


def _error(refusal: Refusal) -> Answer:
    fields = {"object": "error", "message": refusal.message, "type": refusal.kind or "invalid_request_error"}
    return Answer.of_json({**fields, "param": None, "code": refusal.code}, status=refusal.status)


MISTRAL: Final = StrictRules(
    "mistral",
    ENDPOINT,
    (
        HAS_MESSAGES,
        ServerRule("roles in order", "https://github.com/mistralai/mistral-vibe/issues/578", _roles_in_order),
        ServerRule(
            "the user or a tool speaks last",
            "https://github.com/NEKOparapa/AiNiee/issues/641",
            _ends_with_a_question,
        ),
        ServerRule(
            "as many results as calls",
            "https://github.com/mistralai/client-ts/issues/106",
            _as_many_results,
        ),
        ServerRule("ids of nine letters", "https://github.com/nearai/ironclaw/issues/1241", _ids),
        ServerRule(
            "no reasoning of others",
            "https://github.com/BerriAI/litellm/issues/30835",
            _takes_no_other_fields,
        ),
    ),
    _error,
)
