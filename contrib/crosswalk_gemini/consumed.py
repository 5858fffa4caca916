"""What the typed fields take of an event, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crosswalk import KEY, TAKEN, MappingState, residue, taken_if
from crosswalk_gemini.answer import Answer
from crosswalk_gemini.arguments import VALUES, value_key
from crosswalk_gemini.chunks import chunks, is_error
from crosswalk_gemini.finish import is_filtered
from crosswalk_gemini.parts import SERVER_TOOLS
from crosswalk_gemini.usage import is_the_sum

__all__ = ["CONSUMED", "PIECES", "rest_of"]


def _is_the_first_word(word: Any, candidate: dict[str, Any], state: MappingState) -> bool:
    answers: dict[int, Answer] = state.data["answers"]
    words = answers[candidate.get("index") or 0].words
    return word is None or word == "" or (type(word) is str and word == words[0])


def _is_the_refusal(message: Any, candidate: dict[str, Any], _: MappingState) -> bool:
    return is_filtered(candidate.get("finishReason"))


def _is_the_time(text: Any, _: dict[str, Any], state: MappingState) -> bool:
    created = state.created
    return text is None or (created is not None and text == created.isoformat().replace("+00:00", "Z"))


def _is_shown(thought: Any, part: dict[str, Any], _: MappingState) -> bool:
    is_media = "inlineData" in part or "fileData" in part
    return thought is None or bool(part.get("text")) or (thought is True and is_media)


def _has_value(_: Any, piece: dict[str, Any], __: MappingState) -> bool:
    return value_key(piece) is not None


def _is_the_value(name: str) -> Callable[[Any, dict[str, Any], MappingState], bool]:
    return lambda _, piece, __: value_key(piece) == name


_TOKEN = {"token": TAKEN, "logProbability": TAKEN}
_CALL = {
    "name": taken_if(lambda value, _, state: state.carries_name(value)),
    "id": taken_if(lambda value, _, state: state.carries_id(value)),
    "args": taken_if(lambda _, call, __: not call.get("willContinue") and not call.get("partialArgs")),
    "partialArgs": [
        {
            "jsonPath": taken_if(_has_value),
            **{name: taken_if(_is_the_value(name)) for name in VALUES},
        }
    ],
}
_PART = {
    "text": TAKEN,
    "thought": taken_if(_is_shown),
    "thoughtSignature": TAKEN,
    "functionCall": _CALL,
    "inlineData": {"mimeType": TAKEN, "data": TAKEN, "displayName": TAKEN},
    "fileData": {"mimeType": TAKEN, "fileUri": TAKEN, "displayName": TAKEN},
    **dict.fromkeys(SERVER_TOOLS, TAKEN),
}

CONSUMED = {
    "responseId": taken_if(lambda value, _, state: value is None or value == state.response_id),
    "modelVersion": taken_if(lambda value, _, state: value is None or value == state.model),
    "createTime": taken_if(_is_the_time),
    "promptFeedback": {
        "blockReason": taken_if(lambda value, *_: type(value) is str),
        "blockReasonMessage": taken_if(lambda _, feedback, __: bool(feedback.get("blockReason"))),
    },
    "candidates": [
        {
            "index": KEY,
            "content": {"role": taken_if(lambda value, *_: value in ("model", None)), "parts": [_PART]},
            "finishReason": taken_if(_is_the_first_word),
            "finishMessage": taken_if(_is_the_refusal),
            "logprobsResult": {"chosenCandidates": [_TOKEN], "topCandidates": [{"candidates": [_TOKEN]}]},
        }
    ],
    "usageMetadata": {
        "promptTokenCount": TAKEN,
        "candidatesTokenCount": TAKEN,
        "thoughtsTokenCount": TAKEN,
        "cachedContentTokenCount": TAKEN,
        "totalTokenCount": taken_if(is_the_sum),
    },
}
"""What the typed fields take. ``toolUsePromptTokenCount`` stays, the sum does not show it; citations, grounding and
ratings stay, their segments say only a part of them."""

PIECES = (
    "candidates[].content.parts",
    "candidates[].logprobsResult.chosenCandidates",
    "candidates[].logprobsResult.topCandidates",
)
"""The lists that come in pieces: equal ones in a row are two."""


def rest_of(event: Any, state: MappingState) -> dict[str, Any]:
    """What is left of *event*; ``{}`` when nothing is.

    An error's segment keeps the whole of it, so nothing of it is left. Of an array that somebody else
    decoded the rests are kept in an array, too.
    """
    rests = [{} if is_error(chunk) else _rest(chunk, state) for chunk, _ in chunks(event)]
    if type(event) is not list:
        return rests[0]
    return {"event": rests} if any(rests) else {}


def _rest(chunk: dict[str, Any], state: MappingState) -> dict[str, Any]:
    rest = residue(chunk, CONSUMED, state)
    if "candidates" in rest:
        # Proto leaves out the index 0; it says which candidate of the other chunks this one continues.
        rest["candidates"] = [{"index": 0, **candidate} for candidate in rest["candidates"]]
    return rest
