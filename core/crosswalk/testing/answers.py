"""Checks of answers as a whole: visible output, errors, their providers, and the request that they answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import orjson

from crosswalk.formats.tables import option_paths
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.hooks import Recognition
from crosswalk.plugin.registry import Mapper, registry
from crosswalk.testing.captures import json_object
from crosswalk.testing.case import NAME, Case, strings
from crosswalk.testing.pairing import normalized
from crosswalk.testing.perturbation import Leaf, changes, replaced, scalars, show_path
from crosswalk.testing.problems import Problem
from crosswalk.testing.requests import limits_of
from crosswalk.text import clean_message, counted
from crosswalk.types.json import copy_json, dump_json, same_json
from crosswalk.types.values import ErrorKind, FinishReason

# ------------------------------------------------------------------------------- requested
# Checks of an answer against its request: the length that was allowed, the model, and the tools.


LIMITS: Final = frozenset(path.rpartition(".")[2] for path in option_paths()["max_tokens"]) | {
    *("maxTokens", "max_new_tokens"),  # Converse's, and Hugging Face's
}
"""The request options that limit the length of an answer."""


def answers_its_request(case: Case) -> Iterator[Problem]:
    """P4: an answer ends as ``length`` if it has as many tokens as its request allows. The request names model and tools."""
    options = list(options_of(case.capture.request))
    if case.is_answer:
        yield from _refused(case)
    if not case.is_answer or not options:
        return
    names = LIMITS | limits_of(case.mapper)
    yield from _limit(case, [value for name, value in options if name in names and type(value) is int])
    response, sent_texts = case.baseline.response, {value for _, value in options if isinstance(value, str)}
    models = {value for name, value in options if name in ("model", "modelId")}
    if response["id"] in models:
        yield case.problem("P4", "id", f"{response['id']!r} is the model of the request")
    for number, call in enumerate(response["message"].get("tool_calls", ())):
        if call["id"] in sent_texts and call["name"] not in sent_texts:
            message = f"its id {call['id']!r} is a tool of the request, its name is not"
            yield case.problem("P4", f"tool call {number}", message)


def _limit(case: Case, limits: list[int]) -> Iterator[Problem]:
    """A word that only this provider has is read as ``stop`` at the limit, or as ``length`` below it."""
    response, finish_word = case.baseline.response, _own_word(case)
    count, finish = response["usage"]["completion_tokens"], response["finish_reason"]
    if not limits or not count or finish_word is None:
        return
    reading = f"and {finish_word!r} is read as {finish}"
    if finish == FinishReason.STOP and count in limits:
        message = f"the answer has {count} tokens, the limit of its request, {reading}"
        yield case.problem("P4", "finish_reason", message)
    elif finish == FinishReason.LENGTH and count < min(limits):
        message = f"{count} tokens of {min(limits)} that the request allows, {reading}"
        yield case.problem("P4", "finish_reason", message)


def _own_word(case: Case) -> str | None:
    """Return the finish word, or ``None`` if there is none, if it means the same everywhere, or if its meaning is stated."""
    word = case.baseline.response.get("raw_finish_reason")
    is_known = word is None or word.lower().partition(":")[0] in _KNOWN_WORDS
    return None if is_known or "finish" in (case.capture.says or {}) else word


def _refused(case: Case) -> Iterator[Problem]:
    """A word of this provider alone ends only calls, or only refusals, and is read as something else."""
    word, finish = _own_word(case), case.baseline.response["finish_reason"]
    others = [normalized(case.mapper, one).get("response") for one in case.others]
    answers = [case.baseline.response, *filter(None, others)]
    ended = [one for one in answers if one.get("raw_finish_reason") == word]
    is_told = word is not None and any(one["message"].get("content") for one in answers if one not in ended)
    calls = [bool(one["message"].get("tool_calls")) for one in ended]
    is_refused = all(one.get("refusal") and not one["message"].get("content") for one in ended)
    if is_told and all(calls) and finish != FinishReason.TOOL_CALLS:
        yield case.problem("P4", "finish_reason", f"{word!r} ends only calls, and is read as {finish}")
    elif is_told and is_refused and finish in (FinishReason.STOP, FinishReason.LENGTH):
        yield case.problem("P4", "finish_reason", f"{word!r} ends only refusals, and is read as {finish}")
    text = case.baseline.response["message"].get("content") or ""
    own, *rest = (
        _text_paths(events, text if events is case.events else None) for _, events in case.of_this_form()
    )
    if finish == FinishReason.CONTENT_FILTER and own and rest and own.isdisjoint(set().union(*rest)):
        message = f"{min(own)} is read as text, and only answers that end as {finish} have it: it looks like a refusal"
        yield case.problem("P1", "refusal", message)


def _text_paths(events: list[Any], whole: str | None) -> set[str]:
    """Return the paths of the texts in *events*, or of those that are in the *whole* one."""
    texts = [(path, text) for path, text in scalars(events) if isinstance(text, str) and text]
    return {show_path(path[1:], items=False) for path, text in texts if whole is None or text in whole}


_KNOWN_WORDS: Final = frozenset({*FinishReason, "max_tokens", "end_turn", "eos", "completed", "incomplete"})
"""Words with the same meaning everywhere: a server that sends the wrong one is not the plugin's mistake."""


def options_of(request: bytes | None) -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a request, by the last names of their paths. There are none if it is not JSON."""
    try:
        parsed = orjson.loads(request or b"{}")
    except orjson.JSONDecodeError:
        return
    for path, value in scalars(parsed):
        if path and isinstance(path[-1], str):
            yield path[-1], value


# --------------------------------------------------------------------------------- answers
# Checks of answers as a whole: visible output, errors, and their providers.


def choices_are_told_apart(case: Case) -> Iterator[Problem]:
    """P4: with another number of its choice, nothing of an answer stays with the first choice."""
    if not case.is_answer or case.baseline.response.get("alternatives"):
        return
    leaves_by_path: dict[str, list[Leaf]] = {}
    for leaf in case.leaves:
        if _second(leaf.value) is not None:
            leaves_by_path.setdefault(show_path(leaf.path, items=False), []).append(leaf)
    for leaves in leaves_by_path.values():
        events = case.events
        for leaf in leaves:
            events = replaced(events, leaf, _second(leaf.value))
        response = case.map(events).response
        if response is None or not response.get("alternatives"):
            continue
        kinds = [part["type"] for part in response.get("segments", ()) if part["type"] in _OUTPUT_KINDS]
        if kinds:
            message = f"in a second choice, its {kinds[0]} is given as that of the first"
            yield case.problem("P4", leaves[0], message, about="alternatives", kind="choices are mixed")


_OUTPUT_KINDS: Final = ("text", "reasoning", "refusal", "tool_call")


def _second(value: Any) -> Any:
    """Return *value* with 1 for the number 0, as a number or a part of a path, or ``None`` if it has none."""
    if isinstance(value, str):
        second = re.sub(r"(?<=[/.:])0(?=[/.:])", "1", value, count=1)
        return None if second == value else second
    return 1 if type(value) is int and value == 0 else None


def output_shows(case: Case) -> Iterator[Problem]:
    """P4: an answer whose tokens were counted, or that leaves prose in the extensions, has text or parts."""
    response = case.baseline.response
    message, finish = response["message"], response["finish_reason"]
    is_empty = not any(message.get(key) for key in ("content", "tool_calls")) and not response.get("segments")
    if not is_empty or finish not in {FinishReason.STOP, FinishReason.TOOL_CALLS} or response.get("refusal"):
        return
    usage = response["usage"]
    visible_tokens = usage["completion_tokens"] - usage.get("reasoning_tokens", 0)
    extensions = case.baseline.extensions
    # The server may lose generated text. It was not lost if the extensions hold words.
    min_words = 2 if visible_tokens > 2 else 3
    prose_paths = [
        path for path, text in scalars(extensions) if isinstance(text, str) and len(text.split()) >= min_words
    ]
    if prose_paths and (visible_tokens > 2 or response.get("raw_finish_reason")):
        finding = f"is empty, and {show_path(prose_paths[0])} is left in the extensions"
        yield case.problem("P4", "message", f"an answer of {counted(visible_tokens, 'token')} {finding}")


_ERROR: Final[Any] = {"error": {"message": "The server failed.", "type": "server_error", "code": 500}}
"""The error in the format of most APIs."""


def errors_show(case: Case) -> Iterator[Problem]:
    """P4: with an error in place of an event, or of the body, the answer is an error, or it raises.

    It comes in the middle, with the rest behind it; and at the beginning, after one event and at the end, as the last.
    """
    count = len(case.events)
    ends = [(index, True) for index in sorted({0, 1, count - 1}) if index < count]
    for error_index, is_last in [(count // 2, False), *ends] if case.is_answer else ():
        frames = case.frames.copy()
        if frames[error_index][1] is not None:  # an event that is named after another kind is not an error
            frames[error_index] = (frames[error_index][0], "error")
        is_text = frames[error_index][1] in case.mapper.info.text_events
        error = {"data": _ERROR["error"]["message"]} if is_text else _ERROR
        rest = [] if is_last else case.events[error_index + 1 :]
        events = [*case.events[:error_index], error, *rest]
        changed_outcome = case.map_bytes(case.reframed(frames, case.events)(events))
        if changed_outcome.is_taken:
            is_left = "error" in str(changed_outcome.extensions)
            error_fate = "is left in the extensions" if is_left else "is gone"
            place = f"event {error_index + 1} an error"
            yield case.problem("P4", place, f"the answer is whole, and the error {error_fate}", about="error")
            return


def failures_are_errors(case: Case) -> Iterator[Problem]:
    """P4: a recorded failure is an error that its HTTP status allows, also in a 200, and keeps its status and its code."""
    yield from any_failure_is_read(case)
    response = case.baseline.response
    segments = () if response is None else response.get("segments", ())
    error_info = next((part["metadata"] for part in segments if part["type"] == "error"), None)
    if error_info is None or response["finish_reason"] != "error":
        return
    kind, is_retryable, status = ErrorKind(error_info["kind"]), error_info["retryable"], case.capture.status
    statement = case.capture.says or {}
    yield from _no_code(case, error_info)
    # In a stream, a rate limit is perhaps a spent quota.
    is_passing = status in _TRANSIENT_STATUSES if status >= 400 else kind is not ErrorKind.RATE_LIMIT
    if "retryable" not in statement and kind in _TRANSIENT_KINDS and not is_retryable and is_passing:
        failure_name = f"HTTP {status}" if status >= 400 else f"a failure in a stream, of kind {kind},"
        yield case.problem("P4", "failure", f"{failure_name} is read as an error that may not be retried")
    yield from _other_kind(case, error_info)
    for leaf in case.leaves:
        is_sign = type(leaf.value) is bool and "retry" in str(leaf.path[-1]).lower()
        if is_sign or (is_retryable and leaf.value == "retry"):
            told = case.map(replaced(case.events, leaf, not leaf.value if is_sign else "no")).response or {}
            parts = [part.get("metadata", {}) for part in told.get("segments", ())]
            if is_retryable in [part.get("retryable") for part in parts]:
                yield case.problem("P4", leaf, "it says whether to try again, and changes nothing")
    if status < 400:
        has_begun = any(map(response["message"].get, _OUTPUT_FIELDS))
        if "error" not in statement and kind in _REQUEST_ERROR_KINDS and has_begun:
            message = f"the answer had begun, and its failure is read as {kind}, which prevents any"
            yield case.problem("P4", "failure", message)
        return
    usual_kinds = _SERVER_ERROR_KINDS if status >= 500 else _CLIENT_ERROR_KINDS
    allowed_kinds = _KINDS_BY_STATUS.get(status, usual_kinds)
    if kind not in allowed_kinds and "error" not in statement:
        yield case.problem("P4", "failure", f"HTTP {status} is read as {kind}")
    if "retryable" not in statement and is_retryable and status in _FINAL_STATUSES:
        yield case.problem("P4", "failure", f"HTTP {status} is read as an error that may be retried")
    if error_info.get("status") != status:
        yield case.problem("P4", "failure", f"HTTP {status} is read as status {error_info.get('status')}")
    message = " ".join((response["refusal"] or "").split())
    texts = [clean_message(text) for text in strings(case.events[0])]
    long_texts = [text for text in texts if " " in text]
    is_sent = message in texts and not NAME.fullmatch(message) and message != error_info.get("code")
    start = message[:_COMPARED_LENGTH]
    wholes = [text for text in long_texts if len(start) == _COMPARED_LENGTH or json_object(text) is not None]
    is_sent |= any(text[:_COMPARED_LENGTH] in message for text in long_texts)
    is_sent |= any(start in text for text in wholes)
    if long_texts and not is_sent:
        yield case.problem("P4", "failure", f"the message {message[:40]!r} is not a text of the payload")
    if isinstance(case.events[0], dict):
        changed_outcome = case.map_bytes(case.capture.body, status=200)
        if changed_outcome.is_taken:
            message = f"in a 200, it ends as {changed_outcome.response['finish_reason']}"
            yield case.problem("P4", "failure", message)


_COMPARED_LENGTH: Final = 60
"""The number of characters of a message that are compared: a long one is cut."""
_KNOWN_KINDS: Final = frozenset(ErrorKind) - {ErrorKind.UNKNOWN}
_CLIENT_ERROR_KINDS: Final = _KNOWN_KINDS - {ErrorKind.SERVER}
_SERVER_ERROR_KINDS: Final = _KNOWN_KINDS - {ErrorKind.AUTHENTICATION, ErrorKind.PERMISSION}
_KINDS_BY_STATUS: Final = {
    401: frozenset({ErrorKind.AUTHENTICATION, ErrorKind.PERMISSION}),
    402: _CLIENT_ERROR_KINDS - {ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT},
    403: _KNOWN_KINDS - {ErrorKind.SERVER, ErrorKind.TIMEOUT},
    408: frozenset({ErrorKind.TIMEOUT}),
    424: frozenset(ErrorKind),  # TGI's status of a failed generation
    429: frozenset({ErrorKind.RATE_LIMIT, ErrorKind.QUOTA}),
}
"""The kinds that an HTTP status allows, for statuses that say more than who caused the failure."""
_FINAL_STATUSES: Final = frozenset({400, 401, 403, 404, 405, 413, 422})
"""The statuses of a request that fails again if it is sent again."""
_TRANSIENT_KINDS: Final = frozenset({ErrorKind.RATE_LIMIT, ErrorKind.SERVER, ErrorKind.TIMEOUT})
_TRANSIENT_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
"""The statuses of a temporary failure."""
_REQUEST_ERROR_KINDS: Final = _KINDS_BY_STATUS[401] | {
    *(ErrorKind.QUOTA, ErrorKind.INVALID_REQUEST, ErrorKind.MODEL_UNAVAILABLE)
}
"""The kinds of errors that a server reports before it answers."""
_OUTPUT_FIELDS: Final = ("content", "tool_calls")


def _other_kind(case: Case, error_info: dict[str, Any]) -> Iterator[Problem]:
    """A failure in a stream is of no kind, and of one as the body of an HTTP error; or its code is none that was sent."""
    values = {*(str(leaf.value) for leaf in case.leaves), *(name or "" for _, name in case.frames)}
    keys = {key for leaf in case.leaves for key in leaf.path}  # of an event that is called after its failure
    code = error_info.get("code")
    if code is not None and code not in keys and not (code and any(code in value for value in values)):
        yield case.problem("P8", "failure", f"its code {code[:40]!r} is not a value of the payload")
    if case.capture.status < 400 and error_info["kind"] == ErrorKind.UNKNOWN:
        body = dump_json(case.events[-1])
        first, second = (case.map_bytes(body, status=status).response for status in (400, 500))
        kinds = _error_kinds(first) | _error_kinds(second)
        if len(kinds) == 1 and ErrorKind.UNKNOWN not in kinds:
            message = f"of no kind in a stream, and {kinds.pop()} in the body of an HTTP error"
            yield case.problem("P4", "failure", message)


def _error_kinds(response: dict[str, Any] | None) -> set[str]:
    """Return the kinds of the errors of a *response*, none if it is ``None``."""
    parts = [] if response is None else response.get("segments", ())
    return {part["metadata"]["kind"] for part in parts if part["type"] == "error"}


def any_failure_is_read(case: Case) -> Iterator[Problem]:
    """P4: an HTTP error with any body, as proxies send them, is an error. Said once, with the first capture."""
    if case.others and case.capture.case == case.others[0].case:
        for body in (b"", b"<html>Bad gateway</html>", b"null", b"[]", b'{"error": []}', b'{"crosswalk": 1}'):
            changed_outcome = case.map_bytes(body, status=502)
            if changed_outcome.error is not None or changed_outcome.response["finish_reason"] != "error":
                message = f"with the body {body.decode()!r} it is not read as an error"
                yield case.problem("P4", "HTTP 502", message)


def _no_code(case: Case, error_info: dict[str, Any]) -> Iterator[Problem]:
    """An error without a code, although a word or a number of the payload decides its kind."""
    for leaf in case.leaves if error_info.get("code") is None else ():
        is_code = type(leaf.value) is int or (isinstance(leaf.value, str) and NAME.fullmatch(leaf.value))
        if not is_code or leaf.value == case.capture.status or leaf.event < len(case.events) - 1:
            continue
        changed_outcome = case.map(next(changes(case.events, leaf))[1])
        kinds = _error_kinds(changed_outcome.response if changed_outcome.error is None else None)
        if kinds and error_info["kind"] not in kinds:
            yield case.problem("P4", leaf, "it decides the kind of the error, and is not its code")
            return


def one_answer_at_a_time(case: Case) -> Iterator[Problem]:
    """P4: an answer is read alike beside another one, of another model, which is read at once with it or before it."""
    own = case.capture
    form = (own.stream, own.content_type, own.status)
    others = [one.body for one in case.others if (one.stream, one.content_type, one.status) == form]
    found = case.some([one for one in others if one != own.body], 1)
    (body,) = found or [own.body]
    if not case.has_own_framing:  # whose frames may have a length or a checksum
        for name in ("id", "model"):
            body = body.replace(dump_json(case.baseline.response[name]), b'"another-%b"' % name.encode())
    pair = [_pieces(own.body), _pieces(body)] if found else [case.chunks, case.chunks[:-1] or [body]]
    alone = [case.map_at_once(one)[0] for one in pair]
    together = [case.map_at_once(*pair), case.map_at_once(*pair[::-1])[::-1]]
    if not all(
        one.is_like(other) for outcomes in together for one, other in zip(alone, outcomes, strict=True)
    ):
        yield case.problem("P4", "two answers at once", "one is read differently beside the other")
        return
    for rest in (pair[0], case.chunks[1:]) if own.stream else pair[:1]:
        after = [(case.map_at_once(earlier), case.map_at_once(rest)[0])[1] for earlier in pair]
        if not after[0].is_like(after[1]):
            yield case.problem("P4", "one answer after another", "it is read differently than after itself")
            return


def _pieces(body: bytes) -> list[bytes]:
    size = len(body) // 16 + 1
    return [body[start : start + size] for start in range(0, len(body), size)]


_FOREIGN_ANSWERS: Final[dict[str, Any]] = {
    "openai": {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]},
    "openai_responses": {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}]},
    "anthropic": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 1, "output_tokens": 1}},
    "ollama": {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "Hi"}, "eval_count": 1},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP"}],
        "modelVersion": "m", "responseId": "r"},
    "cohere": {"id": "c", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": [
        {"type": "text", "text": "Hi"}]}, "usage": {"billed_units": {"input_tokens": 1, "output_tokens": 1}}},
    "nobody": {"crosswalk": "is no provider"},
    "nobody in a list": [{"crosswalk": 1}, None],
    "nobody in a text": "crosswalk",
}  # fmt: skip
"""The smallest answer of each large dialect, by its provider."""


def recognizes_its_own(case: Case) -> Iterator[Problem]:
    """P4: the plugin is not certain of others' answers, and no other provider is certain of this one."""
    mapper, own_providers = case.mapper, {case.mapper.provider, *case.mapper.info.speaks}
    foreign_answers = [(name, event) for name, event in _FOREIGN_ANSWERS.items() if name not in own_providers]
    try:
        claimed_names = [name for name, event in foreign_answers if _is_certain(mapper, event)]
        likely_names = [
            name
            for name, event in foreign_answers
            if name not in registry.names() and mapper.recognizes(event)
        ]
        recognitions = [_recognition(mapper, event) for event in case.events]
    except ValueError:
        yield case.problem("P4", "detection", "recognizes changes the event")
        return
    except BaseException as error:  # from the code of a plugin
        if is_cancellation(error):
            raise
        yield case.problem("P4", "detection", f"fails with {type(error).__name__} on what others have sent")
        return
    for name in claimed_names:
        message = f"certain of an answer of {name}; recognizes may give POSSIBLE, or look for what nobody else writes"
        yield case.problem("P4", "detection", message)
    for name in likely_names[:1]:
        yield case.problem("P4", "detection", f"takes an answer of {name} for one of its own")
    signs = registry.signs().get(mapper.provider)
    for event, recognition in zip(case.events, recognitions, strict=True):
        has_sign = signs is None or type(event) is not dict or any(sign <= event.keys() for sign in signs)
        if not has_sign and recognition is Recognition.CERTAIN:
            yield case.problem("P4", "detection", "certain of an event without a key of its entry point")
            break
    if case.capture.status >= 400 or not any(recognitions[:1]):
        return  # an error, or another dialect that the server speaks
    for name in registry.names():
        with suppress(Exception):  # of another plugin
            if name not in own_providers and _is_certain(registry.mapper(name), case.events[0]):
                yield case.problem("P4", "detection", f"{name} is certain that this is its answer")


def _recognition(mapper: Mapper, event: Any) -> Recognition | None:
    """Return what *mapper* makes of *event*.

    Raises:
        ValueError: it changes the event.
    """
    own_event = copy_json(event)
    recognition = mapper.recognizes(own_event)
    if not same_json(own_event, event):
        raise ValueError("recognizes changes the event")
    return recognition


def _is_certain(mapper: Mapper, event: Any) -> bool:
    return _recognition(mapper, event) is Recognition.CERTAIN
