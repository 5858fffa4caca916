"""Google Gemini: ``generateContent`` and ``streamGenerateContent`` of the Gemini API and of Vertex AI.

Facts: provider document "Google Gemini". A body and each chunk of a stream are the same object, whether the stream
comes as SSE or, without ``alt=sse``, as one JSON array piece by piece: see :mod:`crosswalk_gemini.arrays`. A decoded array
is read as well. The Interactions API is in :mod:`crosswalk_gemini.interactions`.

Old models send ``STOP`` in every chunk. So content after a finish word is not an error here, and a stream that is cut
after its first finish word looks complete. Only in an array the missing end shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, ClassVar, Final

import attrs

from crosswalk.plugins import (
    CREATED,
    FINISH,
    ID,
    MODEL,
    Access,
    BatchFile,
    ErrorInfo,
    ErrorKind,
    FieldRow,
    FieldTable,
    FinishReason,
    Limits,
    MappingState,
    Names,
    OpenAIChatDialect,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    ServerTool,
    UsageInfo,
    VendorErrors,
    WayBack,
    accept_string,
    count,
    error_delta,
    error_info,
    gemini as wire,
    hookimpl,
    look_at,
    look_at_time,
    requests_of,
    require_object,
    same,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_string,
    unknown_event,
)
from crosswalk_gemini.arrays import ArrayDecoder
from crosswalk_gemini.interactions import (
    EVENT_TYPES,
    ROWS,
    STATUSES,
    Progress,
    interaction_deltas,
    interaction_usage,
)
from crosswalk_gemini.parts import (
    PART,
    Answer,
    Answers,
    blocked_segment,
    number_word,
    take_logprobs,
    usage_info,
)

__all__ = ["MODEL_CLASSES", "Gemini", "plugin"]

MODEL_CLASSES = "crosswalk_gemini:models.toml"
"""The file with the facts about the models."""

ACCESS = Access(
    base_url="https://generativelanguage.googleapis.com",
    base_url_variables=("GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
    api_key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    # In the query, which is allowed as well, it would reach logs.
    api_key_header="x-goog-api-key",
    api_key_scheme=None,
)

_ERRORS = VendorErrors("crosswalk_gemini", "gemini")
_IDENTITY = {"id": "responseId", "model": "modelVersion"}
_FINISH_KEY = "finishReason"
_SIDES: Final = frozenset({"citationMetadata", "groundingMetadata", "safetyRatings"})


def gemini_error(status: int | None, body: Any) -> ErrorInfo:
    """Read an error. *status* is ``None`` inside a stream, because the error has it as its ``code``."""
    return _ERRORS.refined(error_info(status, body))


class OpenAILayer(OpenAIChatDialect):
    """OpenAI's dialect as Gemini speaks it, at ``/v1beta/openai/chat/completions`` and on Vertex AI."""

    text_paths: ClassVar[tuple[str, ...]] = OpenAIChatDialect.text_paths
    marks: ClassVar[tuple[str, ...]] = tuple(
        f"choices[].{part}.{holder}extra_content.google"
        for part in ("message", "delta")
        for holder in ("", "tool_calls[].")
    )


OPENAI_LAYER = OpenAILayer()


def _is_interaction(event: Any) -> bool:
    """Whether *event* is an interaction, or an event of a streamed one."""
    if type(event) is not dict:
        return False
    return event.get("object") == "interaction" or event.get("event_type") in EVENT_TYPES


def framing(start: bytes, limits: Limits, _: str) -> ArrayDecoder | None:
    """Return the decoder for an answer that begins with *start*, or ``None`` if it is not an array."""
    return ArrayDecoder(limits) if start.startswith(b"[") else None


def _is_of_layer(event: Any, state: MappingState) -> bool:
    """Return whether the answer of *event* is in OpenAI's dialect, by its first event."""
    if state.dialect is None and isinstance(event, dict) and "choices" in event:
        state.dialect = OPENAI_LAYER
    return state.dialect is OPENAI_LAYER


class Gemini:
    """The hooks for Google's Gemini models."""

    build_request = staticmethod(requests_of("crosswalk_gemini.requests"))
    map_error = staticmethod(hookimpl(gemini_error))
    part_fields = PART
    chunk_fields = FieldTable(
        {
            _IDENTITY["id"]: ID,
            _IDENTITY["model"]: MODEL,
            f"candidates[].{_FINISH_KEY}": FINISH,
            **{f"usageMetadata.{key}": count(name) for name, key in wire.COUNTS.items()},
        }
    )
    """What a chunk says beside its parts. Code takes it, for its ends and sums are no plain ones."""
    rows: ClassVar[Mapping[str, Mapping[str, FieldRow]]] = {
        "chunk": {
            "createTime": CREATED,
            "candidates[].content.role": same("model"),
            "candidates[].logprobsResult": FieldRow("logprobs", None),
            **dict.fromkeys((f"candidates[].{key}" for key in sorted(_SIDES)), FieldRow("segments", None)),
            "candidates[].finishMessage": FieldRow("refusal", None),
            "promptFeedback.blockReason": FieldRow("finish_reason", None),
            "promptFeedback.safetyRatings": FieldRow("segments", None),
            "promptFeedback.blockReasonMessage": FieldRow("refusal", None),
        },
        **ROWS,
    }
    """What code reads without a table, in a chunk and in the types of an interaction."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="Google Gemini",
            model_classes=MODEL_CLASSES,
            names=Names(otel="gcp.gemini", prices="google"),
            endpoints=(
                "/v1beta/models/{model}:generateContent",
                "/v1beta/models/{model}:streamGenerateContent",
                "/v1beta/interactions",
                "/v1beta/openai/chat/completions",
            ),
            documentation="https://ai.google.dev/api/generate-content",
            message_paths=("candidates[].content", "steps[]", "outputs[]", *OpenAILayer.message_paths),
            text_paths=(
                "candidates[0].content.parts[0].text",
                "delta.text",
                *OpenAILayer.text_paths,
            ),
            usage_key="usageMetadata",
            logprob_paths={"candidates[0].logprobsResult": lambda candidate, _: take_logprobs(candidate)},
            pieces=(
                *OpenAILayer.pieces,
                "candidates[].content.parts",
                "candidates[].logprobsResult.chosenCandidates",
                "candidates[].logprobsResult.topCandidates",
            ),
            cumulative=(
                "candidates[].safetyRatings",
                "candidates[].groundingMetadata",
                "promptFeedback.safetyRatings",
                "usageMetadata.promptTokensDetails",
            ),
            framing=framing,
            access=ACCESS,
            call_names="[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
            way_back=WayBack(
                takes_media=("image", "audio", "video", "file"),
                shows_pictures=True,
                moves_system=True,
                knows_failures=True,
                server_tools=(
                    ServerTool("executableCode", "codeExecutionResult"),
                    ServerTool("toolCall", "toolResponse"),
                ),
            ),
            hosted_tools=("web_search", "web_fetch", "code_execution", "file_search"),
            repeats_finish=True,  # old models send STOP in every chunk
            # https://ai.google.dev/gemini-api/docs/batch-api
            batch_file=BatchFile(
                id="key", body="request", names_endpoint=False, model="job", results="gemini_batch"
            ),
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: by fields that only this API has."""
        if _is_interaction(event):
            is_event = "event_type" in event or "steps" in event or "outputs" in event
            return Recognition.CERTAIN if is_event else Recognition.POSSIBLE
        if isinstance(event, dict) and isinstance(event.get("choices"), list):
            return Recognition.CERTAIN if OPENAI_LAYER.is_marked(event) else Recognition.NO
        match event[0] if isinstance(event, list) and event else event:
            case (
                {"usageMetadata": dict()}
                | {"promptFeedback": dict()}
                | {"modelVersion": _, "candidates": [dict(), *_]}
                | {"candidates": [{"finishReason": _}, *_]}
                | {"candidates": [{"content": {"parts": list()}}, *_]}
            ):
                return Recognition.CERTAIN
            case {"error": {"code": int(), "status": str(word)}} if word in wire.ERRORS:
                return Recognition.CERTAIN  # Google's words, on Vertex AI as well
            case {"error": {"code": int()} | {"code": str(), "message": str()}}:
                return Recognition.POSSIBLE
        return Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. Tools that decode a capture without the provider's framing give an array."""
        if state.repeated_texts:
            state.own(Answers).add_repeated(state.repeated_texts)
        if _is_interaction(event):
            return interaction_deltas(event, state)
        if _is_of_layer(event, state):
            deltas: Iterable[ResponseDelta] = OPENAI_LAYER.map_delta(event, state)
            return deltas
        if type(event) is list:
            return _array_deltas(event, state)
        return chunk_deltas(event if type(event) is dict else require_object(event), state)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``. Vague words are errors if the candidate has produced nothing."""
        if state.dialect is OPENAI_LAYER:
            finish_reason: FinishReason | None = OPENAI_LAYER.finish_reasons.get(reason)
            return finish_reason
        if reason in _VAGUE_WORDS and not state.own(Answers):
            return None  # it is in another provider's answer, with unknown content
        return REASONS.get(reason) or STATUSES.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. The reports of an array that somebody else decoded are in its deltas."""
        if type(event) is list:
            return None
        if state.dialect is OPENAI_LAYER:
            counts: UsageInfo | None = OPENAI_LAYER.map_usage(event, state)
            return counts
        return interaction_usage(event, state) if state.own(Progress).is_read else usage_info(event, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``. A candidate with only its number left is dropped. Arrays stay arrays."""
        if state.dialect is OPENAI_LAYER:
            remaining: dict[str, Any] = OPENAI_LAYER.extensions(event, state)
            return remaining
        chunks = event if type(event) is list else [event]
        for chunk in chunks:
            if "candidates" in chunk and (not chunk["candidates"] or 1 in map(len, chunk["candidates"])):
                chunk["candidates"] = [item for item in chunk["candidates"] if item.keys() != {"index"}]
                if not chunk["candidates"]:
                    del chunk["candidates"]
        remainder: dict[str, Any] = {"event": event} if type(event) is list else event
        return remainder if any(chunks) else {}


# One ``GenerateContentResponse``: its candidates, or the verdict that there are none (sections 2 to 4).

_STOP_WORDS = "STOP", "1"
_VAGUE_WORDS = (*wire.VAGUE, "0")
_ERROR_KINDS_BY_WORD = {**wire.FAILED, **dict.fromkeys(("5", "0"), ErrorKind.UNKNOWN)}
# Asked for numbers, both APIs write these; above 8 theirs differ. All of 3, 4, 6, 7 and 8 are filters.
REASONS = {
    **wire.FINISH_REASONS,
    "1": FinishReason.STOP,
    "2": FinishReason.LENGTH,
    **dict.fromkeys(("3", "4", "6", "7", "8"), FinishReason.CONTENT_FILTER),
    **dict.fromkeys(_ERROR_KINDS_BY_WORD, FinishReason.ERROR),
}

_CHUNK_KEYS = ("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId")


def chunk_deltas(chunk: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Return the deltas of one chunk or body, candidate by candidate.

    Raises:
        UnknownEventError: it is not an answer of this API.
        WireTypeError: a field that decides the answer has a wrong type.
    """
    if chunk.get("error"):
        yield take_error(chunk, gemini_error(None, chunk))
        return
    if chunk.keys().isdisjoint(_CHUNK_KEYS):
        raise unknown_event(chunk, "no candidates in it")
    state.take_identity(chunk, **_IDENTITY)
    if "createTime" in chunk:
        if state.created is None or type(chunk["createTime"]) is not str:
            state.identify(created=look_at_time(chunk, "createTime"))
        # Other values, and other spellings of a time, stay.
        created_text = None if state.created is None else state.created.isoformat().replace("+00:00", "Z")
        take_same(chunk, "createTime", created_text)
    numbers: set[int] = set()
    for position, candidate in enumerate(_one_by_one(chunk, "candidates")):
        number = take_count(candidate, "index")
        if number is None:  # proto leaves zeros out, and some proxies every number
            number = position if 0 in numbers else 0
        numbers.add(number)
        candidate["index"] = number
        yield from _candidate_deltas(candidate, number, state)
    if "promptFeedback" in chunk:
        yield from _feedback_deltas(chunk, state)


def _array_deltas(chunks: list[Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Return the deltas of an array that somebody else decoded, its reports included."""
    for number, item in enumerate(chunks):
        chunk = require_object(item, f"[{number}]")
        yield from chunk_deltas(chunk, state)
        usage = usage_info(chunk, state)
        if usage is not None:
            yield ResponseDelta(usage=usage)


def _one_by_one(container: dict[str, Any], key: str) -> Iterable[dict[str, Any]]:
    """Take the objects of an array, as :func:`take_objects`. Those before a wrong item come before the error."""
    items = container.get(key)
    if type(items) is not list or not items:
        return take_objects(container, key)
    return items if {dict}.issuperset(map(type, items)) else _before_wrong(container, key)


def _before_wrong(container: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    yield from takewhile(lambda item: type(item) is dict, container[key])
    take_objects(container, key)


def _candidate_deltas(candidate: dict[str, Any], choice: int, state: MappingState) -> Iterator[ResponseDelta]:
    """Return the parts, then their details once the answer has ended, then its end."""
    if choice not in state.choices:
        state.begin(choice)
    answer = state.own(Answers)[choice]
    content = take_object(candidate, "content")
    if content:
        for part in _one_by_one(content, "parts"):
            yield from answer.part_deltas(part, state)
        if content.get("role") == "model":  # in every chunk
            del content["role"]
        else:
            take_same(content, "role", "model")
    logprobs = take_logprobs(candidate) if "logprobsResult" in candidate else None
    if logprobs:
        yield ResponseDelta(logprobs=logprobs, choice=choice)
    if not _SIDES.isdisjoint(candidate):
        answer.note_sides(candidate, state)
    is_word = type(candidate.get(_FINISH_KEY)) is str
    word = (take_string if is_word else _take_word)(candidate, _FINISH_KEY)
    if word and (
        answer.word is None or answer.word in _VAGUE_WORDS
    ):  # those before the last chunk say nothing yet
        answer.word = word
    elif word and word != answer.word:
        candidate.setdefault(_FINISH_KEY, word)
    if answer.word is not None and (answer.citations or answer.grounding or answer.ratings):
        for segment in answer.segments_beside():
            yield ResponseDelta(segment=segment, choice=choice)
    if word and (word not in _VAGUE_WORDS or answer.word in _VAGUE_WORDS):
        yield from _end_deltas(candidate, word, answer, state)


def _end_deltas(
    candidate: dict[str, Any], word: str, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """Return the end of an answer with *word*: its detail, then the word."""
    choice = answer.choice
    message = look_at(candidate, "finishMessage", str) if "finishMessage" in candidate else None
    if word in _STOP_WORDS and answer.writer is not None:
        # Some streams leave out the end of the arguments. With any other word they are cut, and stay so.
        for fragment in answer.call_end(state):
            yield ResponseDelta(tool_call_delta=fragment, choice=choice)
    if message and REASONS.get(word) is FinishReason.CONTENT_FILTER:
        del candidate["finishMessage"]
        yield ResponseDelta(refusal_delta=message, choice=choice)
    if word in _VAGUE_WORDS and answer.has_output:
        state.vague_words.add(word)
        yield ResponseDelta(finish_reason=FinishReason.STOP, raw_finish_reason=word, choice=choice)
    elif word in _ERROR_KINDS_BY_WORD:
        cause = message or f"the answer ended with {word}"
        is_retryable = word == "MALFORMED_RESPONSE"
        delta = error_delta(ErrorInfo(_ERROR_KINDS_BY_WORD[word], cause, is_retryable, code=word))
        # An error with a finish reason would be one of the whole response.
        reason = None if choice else FinishReason.ERROR
        yield attrs.evolve(delta, finish_reason=reason, raw_finish_reason=word, choice=choice)
    else:
        yield ResponseDelta(raw_finish_reason=word, choice=choice)


def _feedback_deltas(chunk: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """The end of an answer that was refused for its prompt (section 4)."""
    feedback = take_object(chunk, "promptFeedback") or {}
    block_reason = _take_word(feedback, "blockReason")
    if not block_reason:
        return
    yield ResponseDelta(segment=blocked_segment(feedback, block_reason, state))
    message = accept_string(feedback, "blockReasonMessage")
    if message:
        yield ResponseDelta(refusal_delta=message)
    yield ResponseDelta(finish_reason=FinishReason.CONTENT_FILTER, raw_finish_reason=block_reason)


def _take_word(container: dict[str, Any], key: str) -> str | None:
    """Take the word of an enum, ``None`` if it is missing. A number stands for its word, and stays.

    Raises:
        WireTypeError: it is neither.
    """
    return number_word(container.get(key)) or take_string(container, key)


plugin = Gemini()
