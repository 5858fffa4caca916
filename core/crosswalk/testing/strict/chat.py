"""The rules of Chat Completions: OpenAI's, those that DeepSeek, Groq and Moonshot add, and Mistral's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from crosswalk.formats.chat_table import CHAT
from crosswalk.testing.exchange import Answer
from crosswalk.testing.strict.rules import (
    ServerRule,
    StrictRefusal,
    StrictRequest,
    StrictRules,
    objects,
    text_at,
    values_of,
)

# ------------------------------------------------------------------------------------ chat
# The rules of Chat Completions: OpenAI's, and those that DeepSeek, Groq and Moonshot add.


def messages_of(request: StrictRequest) -> Iterator[tuple[int, dict[str, Any]]]:
    """The messages of *request*, numbered."""
    return enumerate(request.items("messages"))


def call_ids(message: dict[str, Any]) -> list[str]:
    """The ids of the calls in *message*."""
    return [text_at(call, "id") for call in objects(message.get("tool_calls"))]


def rounds(request: StrictRequest) -> Iterator[tuple[int, list[str], list[tuple[int, str]]]]:
    """Each answer or start of the conversation: its place, the ids of its calls, the results right after it."""
    start, ids_of_calls, results = 0, [], []  # type: int, list[str], list[tuple[int, str]]
    for number, message in messages_of(request):
        if message.get("role") == "tool":
            results.append((number, text_at(message, "tool_call_id")))
        else:
            yield start, ids_of_calls, results
            start, ids_of_calls, results = number, call_ids(message), []
    yield start, ids_of_calls, results


def _has_messages(request: StrictRequest) -> Iterator[StrictRefusal]:
    if not request.items("messages"):
        message = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        yield StrictRefusal(message, "messages", "empty_array")


def _calls_have_results(request: StrictRequest) -> Iterator[StrictRefusal]:
    for start, ids_of_calls, results in rounds(request):
        answered_ids = [id for _, id in results]
        missing_ids = [id for id in ids_of_calls if id not in answered_ids]
        if missing_ids:
            message = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing_ids)}"
            )
            yield StrictRefusal(message, f"messages.[{start}].role")


def _results_have_calls(request: StrictRequest) -> Iterator[StrictRefusal]:
    for _, ids_of_calls, results in rounds(request):
        for number, id in results:
            if id not in ids_of_calls:
                message = (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                    "with 'tool_calls'."
                )
                yield StrictRefusal(message, f"messages.[{number}].role")


def _one_result_for_a_call(request: StrictRequest) -> Iterator[StrictRefusal]:
    for _, _, results in rounds(request):
        for position, (number, id) in enumerate(results):
            for other_number, other_id in results[:position]:
                if other_id == id:
                    message = (
                        f"Invalid parameter: Duplicate value for 'tool_call_id' of '{id}', "
                        f"in messages[{other_number}] and messages[{number}]."
                    )
                    yield StrictRefusal(message, f"messages.[{number}].tool_call_id")


def _ids_are_unique(request: StrictRequest) -> Iterator[StrictRefusal]:
    used_ids: set[str] = set()
    for number, message in messages_of(request):
        for id in call_ids(message):
            if id in used_ids:
                yield StrictRefusal(f"Duplicate value for 'tool_call_id' of {id} in message[{number}]")
            used_ids.add(id)


def _ids_are_short(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, message in messages_of(request):
        for call_number, id in enumerate(call_ids(message)):
            if len(id) > 40:
                param = f"messages[{number}].tool_calls[{call_number}].id"
                error_message = (
                    f"Invalid '{param}': string too long. Expected a string with maximum length 40, "
                    f"but got a string with length {len(id)} instead."
                )
                yield StrictRefusal(error_message, param, "string_above_max_length")


def _content_is_not_null(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, message in messages_of(request):
        has_other_content = any(
            message.get(key) for key in ("tool_calls", "function_call", "audio", "refusal")
        )
        if message.get("content") is None and not (message.get("role") == "assistant" and has_other_content):
            error_message = "Invalid value for 'content': expected a string, got null."
            yield StrictRefusal(error_message, f"messages.[{number}].content")


def _answers_say_something(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, message in messages_of(request):
        if message.get("role") == "assistant" and not (message.get("content") or message.get("tool_calls")):
            yield StrictRefusal(
                f"Invalid request: the message at position {number} with role 'assistant' must not be empty"
            )


def _thinks(request: StrictRequest) -> bool:
    """Whether the request asks for thinking, or does not forbid it to a model that has thought before."""
    thinking = request.body.get("thinking")
    mode = thinking.get("type") if isinstance(thinking, dict) else None
    return mode == "enabled" or (
        mode != "disabled" and any(values_of(request.issued.events, "reasoning_content"))
    )


def _deepseek_reasoning_returns(request: StrictRequest) -> Iterator[StrictRefusal]:
    calling_messages = [message for _, message in messages_of(request) if message.get("tool_calls")]
    if _thinks(request) and not all(message.get("reasoning_content") for message in calling_messages):
        yield StrictRefusal("The `reasoning_content` in the thinking mode must be passed back to the API.")


def _kimi_reasoning_returns(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, message in messages_of(request):
        is_missing = message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str)
        if is_missing and _thinks(request):
            yield StrictRefusal(
                "thinking is enabled but reasoning_content is missing in assistant tool call message "
                f"at index {number}"
            )


def _groq_takes_no_reasoning_content(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, message in messages_of(request):
        if "reasoning_content" in message:
            message_path = f"messages.{number}"
            yield StrictRefusal(
                f"'{message_path}' : for 'role:assistant' the following must be satisfied"
                f"[('{message_path}' : property 'reasoning_content' is unsupported)]"
            )


def _openai_error(refusal: StrictRefusal) -> Answer:
    fields = {"message": refusal.message, "type": refusal.kind or "invalid_request_error"}
    return Answer.of_json(
        {"error": {**fields, "param": refusal.param, "code": refusal.code}}, status=refusal.status
    )


def _deepseek_error(refusal: StrictRefusal) -> Answer:
    fields = {"message": refusal.message, "type": "invalid_request_error", "param": None}
    return Answer.of_json({"error": {**fields, "code": "invalid_request_error"}}, status=refusal.status)


def _short_error(refusal: StrictRefusal) -> Answer:
    fields = {"message": refusal.message, "type": "invalid_request_error"}
    return Answer.of_json({"error": fields}, status=refusal.status)


HAS_MESSAGES: Final = ServerRule(
    "the conversation has messages",
    "https://github.com/openai/openai-openapi (CreateChatCompletionRequest.messages: minItems 1)",
    _has_messages,
)


def _paired(calls: str, results: str, single: str) -> tuple[ServerRule, ...]:
    """The rules of calls and results, with the sources that state them for a provider."""
    return (
        ServerRule("calls have results", calls, _calls_have_results),
        ServerRule("results have calls", results, _results_have_calls),
        ServerRule("a call has one result", single, _one_result_for_a_call),
    )


_PAIRING_RULES: Final = _paired(
    "https://github.com/BerriAI/litellm/issues/10083",
    "https://github.com/smarter-sh/smarter/issues/264",
    "https://github.com/agno-agi/agno/issues/5116",
)
ENDPOINT: Final = "/chat/completions"

OPENAI: Final = StrictRules(
    "openai",
    ENDPOINT,
    (
        HAS_MESSAGES,
        *_PAIRING_RULES,
        ServerRule("ids are short", "https://github.com/vercel/ai/issues/5171", _ids_are_short),
        ServerRule(
            "content is not null",
            "https://github.com/run-llama/llama_index/pull/17921",
            _content_is_not_null,
        ),
    ),
    _openai_error,
)
DEEPSEEK: Final = StrictRules(
    "deepseek",
    ENDPOINT,
    (
        HAS_MESSAGES,
        *_paired(
            "https://github.com/langgenius/dify/issues/32222",
            "https://github.com/qwersyk/Newelle/issues/425",
            "https://github.com/HKUDS/nanobot/issues/3945",
        ),
        ServerRule(
            "ids are unique",
            "https://github.com/craft-ai-agents/craft-agents-oss/issues/630",
            _ids_are_unique,
        ),
        ServerRule(
            "reasoning returns with its calls",
            "https://api-docs.deepseek.com/guides/thinking_mode",
            _deepseek_reasoning_returns,
        ),
    ),
    _deepseek_error,
)
GROQ: Final = StrictRules(
    "groq",
    ENDPOINT,
    (
        HAS_MESSAGES,
        *_PAIRING_RULES,
        ServerRule(
            "no reasoning_content",
            "https://github.com/janhq/jan/issues/8136",
            _groq_takes_no_reasoning_content,
        ),
    ),
    _short_error,
)
MOONSHOT: Final = StrictRules(
    "moonshot",
    ENDPOINT,
    (
        HAS_MESSAGES,
        *_PAIRING_RULES,
        ServerRule("ids are unique", "https://github.com/openclaw/openclaw/issues/84730", _ids_are_unique),
        ServerRule(
            "answers are not empty",
            "https://github.com/AstrBotDevs/AstrBot/issues/7200",
            _answers_say_something,
        ),
        ServerRule(
            "reasoning returns with its calls",
            "https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model#multi-step-tool-call",
            _kimi_reasoning_returns,
        ),
    ),
    _short_error,
)


# --------------------------------------------------------------------------------- mistral
# The rules of Mistral's chat endpoint, whose validator of requests is public: ``mistral_common``.


_ID_PATTERN: Final = re.compile("[a-zA-Z0-9]{9}")
_ROLES_AFTER: Final = {
    "system": ("system", "user", "assistant"),
    "user": ("system", "user", "assistant"),
    "assistant": ("user", "assistant", "tool"),
    "tool": ("assistant", "tool"),
}
"""The roles that Mistral takes after each role."""
_FOREIGN_FIELDS: Final = tuple(
    row.path.removeprefix("messages[].") for row in CHAT.rows if row.place == "reasoning"
)
"""Where servers of the same dialect have reasoning."""


def _roles_in_order(request: StrictRequest) -> Iterator[StrictRefusal]:
    for (_, previous_message), (_, message) in pairwise(messages_of(request)):
        previous_role, role = text_at(previous_message, "role"), text_at(message, "role")
        if role not in _ROLES_AFTER.get(previous_role, ()):
            yield _order(f"Unexpected role '{role}' after role '{previous_role}'")


def _ends_with_a_question(request: StrictRequest) -> Iterator[StrictRefusal]:
    last_messages = [*messages_of(request)][-1:]
    if (
        last_messages
        and last_messages[0][1].get("role") == "assistant"
        and last_messages[0][1].get("prefix") is not True
    ):
        yield _order(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        )


def _as_many_results(request: StrictRequest) -> Iterator[StrictRefusal]:
    for _, calls, results in rounds(request):
        if len(calls) != len(results):
            yield _order("Not the same number of function calls and responses")


def _ids(request: StrictRequest) -> Iterator[StrictRefusal]:
    for _, message in messages_of(request):
        result_ids = [text_at(message, "tool_call_id")] if "tool_call_id" in message else []
        for id in (*call_ids(message), *result_ids):
            if not _ID_PATTERN.fullmatch(id):
                error_message = f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
                yield StrictRefusal(error_message, code="3280", kind="invalid_function_call")


def _takes_no_other_fields(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, message in messages_of(request):
        for name in _FOREIGN_FIELDS:
            if name not in message:
                continue
            path = f"body.messages.{number}.{message.get('role')}.{name}"
            yield StrictRefusal(f"extra_forbidden: {path}: Extra inputs are not permitted", status=422)


def _order(message: str) -> StrictRefusal:
    return StrictRefusal(message, code="3230", kind="invalid_request_message_order")


def _error(refusal: StrictRefusal) -> Answer:
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
