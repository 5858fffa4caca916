"""The rules of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from crosswalk.responses.vocabulary import IdKind
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

_PREFIXES: Final = {
    kind.value: kind.prefix.removesuffix("_")
    for kind in (
        IdKind.MESSAGE,
        IdKind.REASONING,
        IdKind.FUNCTION_CALL,
        IdKind.CUSTOM_TOOL_CALL,
        IdKind.WEB_SEARCH_CALL,
        IdKind.FILE_SEARCH_CALL,
        IdKind.CODE_INTERPRETER_CALL,
    )
}
"""The beginnings of ids that OpenAI's own server checks."""
_CALL_WORDS: Final = {"function_call": "function call", "custom_tool_call": "custom tool call"}


def _items(request: StrictRequest) -> list[dict[str, Any]]:
    """The items of the input; a message may leave its type out."""
    return [{**item, "type": text_at(item, "type") or "message"} for item in request.items("input")]


def _calls_have_outputs(request: StrictRequest) -> Iterator[StrictRefusal]:
    items = _items(request)
    for kind, words in _CALL_WORDS.items():
        output_ids = [text_at(item, "call_id") for item in items if item["type"] == f"{kind}_output"]
        for item in items:
            if item["type"] == kind and text_at(item, "call_id") not in output_ids:
                yield StrictRefusal(f"No tool output found for {words} {item.get('call_id')}.", "input")


def _outputs_have_calls(request: StrictRequest) -> Iterator[StrictRefusal]:
    items = _items(request)
    is_continued = request.body.get("previous_response_id") or request.body.get("conversation")
    issued_ids = [*values_of(request.issued.events, "call_id")] if is_continued else []
    for kind, words in _CALL_WORDS.items():
        call_ids: list[str] = []
        for item in items:
            id = text_at(item, "call_id")
            if item["type"] == kind:
                call_ids.append(id)
            elif item["type"] == f"{kind}_output" and id not in call_ids + issued_ids:
                yield StrictRefusal(f"No tool call found for {words} output with call_id {id}.", "input")


def _reasoning_is_followed(request: StrictRequest) -> Iterator[StrictRefusal]:
    for item, next_item in pairwise([*_items(request), {"type": "end"}]):
        is_answer = next_item["type"] == "message" and next_item.get("role") == "assistant"
        is_end = next_item["type"] in ("end", "message") or next_item["type"].endswith("_output")
        if item["type"] == "reasoning" and is_end and not is_answer:
            yield StrictRefusal(
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
                "input",
            )


def _reasoning_comes_with_its_item(request: StrictRequest) -> Iterator[StrictRefusal]:
    items = _items(request)
    present_ids = [text_at(item, "id") for item in items]
    for output in values_of(request.issued.events, "output"):
        for previous_item, item in pairwise(objects(output)):
            if previous_item.get("type") != "reasoning" or item.get("id") is None:
                continue
            if item["id"] in present_ids and previous_item.get("id") not in present_ids:
                yield StrictRefusal(
                    f"Item '{item['id']}' of type '{item.get('type')}' was provided without its required "
                    f"'reasoning' item: '{previous_item.get('id')}'.",
                    "input",
                )


def _ids_have_their_prefix(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, item in enumerate(_items(request)):
        prefix, id = _PREFIXES.get(item["type"], ""), text_at(item, "id")
        if id and not id.startswith(prefix):
            param = f"input[{number}].id"
            yield StrictRefusal(
                f"Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}'.", param
            )


def _ids_are_unique(request: StrictRequest) -> Iterator[StrictRefusal]:
    used_ids: set[str] = set()
    for item in _items(request):
        id = text_at(item, "id")
        if id and id in used_ids:
            yield StrictRefusal(
                f"Duplicate item found with id {id}. Remove duplicate items from your input.", "input"
            )
        used_ids.add(id)


def _encrypted_content_is_its_own(request: StrictRequest) -> Iterator[StrictRefusal]:
    for item in _items(request):
        content = item.get("encrypted_content")
        if content is not None and not request.issued.has(content):
            yield StrictRefusal(
                f"The encrypted content {str(content)[:4]}...{str(content)[-4:]} could not be verified.",
                code="invalid_encrypted_content",
            )


def _stored_reasoning_is_known(request: StrictRequest) -> Iterator[StrictRefusal]:
    is_stored = request.body.get("store") is not False
    for item in _items(request):
        id = item.get("id")
        if item["type"] != "reasoning" or item.get("encrypted_content") is not None:
            continue
        if not is_stored:
            yield StrictRefusal(
                f"Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again "
                "with `store` set to true, or remove this item from your input.",
                "input",
                status=404,
            )
        elif not request.issued.has(id):
            yield StrictRefusal(f"Item with id '{id}' not found.", "input", status=404)


def _call_ids_are_short(request: StrictRequest) -> Iterator[StrictRefusal]:
    for number, item in enumerate(_items(request)):
        id = text_at(item, "call_id")
        if len(id) > 64:
            param = f"input[{number}].call_id"
            yield StrictRefusal(
                f"Invalid '{param}': string too long. Expected a string with maximum length 64, "
                f"but got a string with length {len(id)} instead.",
                param,
                "string_above_max_length",
            )


def _previous_response_is_known(request: StrictRequest) -> Iterator[StrictRefusal]:
    id = request.body.get("previous_response_id")
    if id is not None and not request.issued.has(id):
        message = f"Previous response with id '{id}' not found."
        yield StrictRefusal(message, "previous_response_id", "previous_response_not_found")


def _error(refusal: StrictRefusal) -> Answer:
    error = {"message": refusal.message, "type": "invalid_request_error", "param": refusal.param}
    return Answer.of_json({"error": {**error, "code": refusal.code}}, status=refusal.status)


RESPONSES: Final = StrictRules(
    "openai_responses",
    "/responses",
    (
        ServerRule(
            "calls have outputs", "https://github.com/symgraph/GhidrAssist/issues/78", _calls_have_outputs
        ),
        ServerRule(
            "outputs have calls", "https://github.com/continuedev/continue/issues/10092", _outputs_have_calls
        ),
        ServerRule(
            "reasoning is followed by its item",
            "https://github.com/continuedev/continue/issues/8933",
            _reasoning_is_followed,
        ),
        ServerRule(
            "an item comes with its reasoning",
            "https://github.com/cline/cline/issues/12242",
            _reasoning_comes_with_its_item,
        ),
        ServerRule(
            "ids have the prefix of their type",
            "https://github.com/openai/codex/issues/33176",
            _ids_have_their_prefix,
        ),
        ServerRule(
            "ids are unique",
            "https://github.com/vercel/ai/issues/7883",
            _ids_are_unique,
        ),
        ServerRule(
            "call ids are short", "https://github.com/openclaw/openclaw/pull/875", _call_ids_are_short
        ),
        ServerRule(
            "encrypted content is OpenAI's own",
            "https://github.com/openai/codex/issues/8145",
            _encrypted_content_is_its_own,
        ),
        ServerRule(
            "reasoning without content is stored",
            "https://github.com/vercel/ai/issues/7543",
            _stored_reasoning_is_known,
        ),
        ServerRule(
            "the previous response is known",
            "https://github.com/maximhq/bifrost/issues/2441",
            _previous_response_is_known,
        ),
    ),
    _error,
)
