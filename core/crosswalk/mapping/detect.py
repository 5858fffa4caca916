"""Detects the provider of a payload of unknown origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Any, Final

from crosswalk.errors import DetectionError, FramingError, PluginError
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.hooks import Recognition
from crosswalk.plugin.registry import Mapper, Registry
from crosswalk.text import where_raised
from crosswalk.types.json import copy_json, load_json
from crosswalk.wire.framing import Limits, SniffingDecoder, is_done, load_event

MOST_EVENTS = 50
"""A stream tells its origin early, or not at all."""


def candidates(events: Iterable[Any], registry: Registry) -> dict[str, Recognition]:
    """Return the providers that recognize *events*, with the best recognition over the first fifty events.

    A provider with a server in another provider's dialect is at most possible.
    Imports every provider that is not blocked. Broken ones are skipped.
    """
    first_events = list(islice(events, MOST_EVENTS))
    inquiry = _Asking(first_events, registry, None, envelope_of(first_events, registry))
    return inquiry.recognized(registry.names())


class _Asking:
    """Asks providers how well they recognize the beginning of an answer, each once.

    Attributes:
        answers: the recognition of each provider that was asked.
        faults: invalid answers.
        failures: the first error of each hook that failed.
        envelope: the key under which a log's line has the answer, or ``None``. No shipped provider recognizes such a line.
    """

    def __init__(
        self,
        events: list[Any],
        registry: Registry,
        among: frozenset[str] | None = None,
        envelope: str | None = None,
    ) -> None:
        self.answers: dict[str, tuple[Mapper, Recognition]] = {}
        self.faults: list[PluginError] = []
        self.failures: dict[str, BaseException] = {}
        self.envelope = envelope
        self._events = events
        self._registry = registry
        self._wanted_names = among
        self._lookup: Callable[[str], Mapper] = registry.mapper

    def shipped(self) -> dict[str, Recognition]:
        """Return the recognitions of the shipped providers only, reduced to the certain ones if there are any."""
        self._lookup = self._registry.shipped
        return self._best(self._registry.names_by_origin()[0])

    def is_certain(self) -> bool:
        """Whether a shipped provider is certain."""
        self._lookup = self._registry.shipped
        return bool(self._certain(self._registry.names_by_origin()[0]))

    def others(self) -> dict[str, Recognition]:
        """The same of all that others have registered.

        One that is certain even of a plain answer, without anybody's mark, is certain of nothing.
        """
        registry = self._registry
        self._lookup, earlier_answers, self.answers = registry.mapper, self.answers, {}
        recognitions = self._best(registry.names_by_origin()[1])
        boasting_names = {
            name
            for name, recognition in recognitions.items()
            if recognition is Recognition.CERTAIN and self._is_certain_of_plain(self.answers[name][0])
        }
        self.answers = {**earlier_answers, **self.answers}
        return {
            name: Recognition.POSSIBLE if name in boasting_names else recognition
            for name, recognition in recognitions.items()
        }

    def _is_certain_of_plain(self, mapper: Mapper) -> bool:
        if not self._registry.names_by_origin()[0]:
            return False  # it must get all other answers
        return any(
            ask(mapper.recognizes, copy_json(event)) is Recognition.CERTAIN for event in _PLAIN_ANSWERS
        )

    def _best(self, names: list[str]) -> dict[str, Recognition]:
        """Return the certain ones of *names*. They are asked first, because the others then need no import."""
        recognitions = _of(self._wanted_names, self._certain(names))
        return recognitions or _of(self._wanted_names, self.recognized(names))

    def _certain(self, names: list[str]) -> dict[str, Recognition]:
        """Return the certain providers. Imports only those with signatures in the events."""
        if not all(type(event) is dict for event in self._events):
            return {}  # signs are keys
        keys = {key for event in self._events for key in event}
        signs = self._registry.signs()
        signed_names = [
            name
            for name in names
            if (own_signs := signs[name]) is None or any(sign <= keys for sign in own_signs)
        ]
        self._ask(signed_names)
        return {
            name: recognition
            for name, (_, recognition) in self.answers.items()
            if recognition is Recognition.CERTAIN
        }

    def recognized(self, names: Iterable[str]) -> dict[str, Recognition]:
        """The providers of *names* that recognize the answer, or speak the dialect of one that does."""
        self._ask(names)
        answers = self.answers
        recognitions = {
            name: recognition
            for name, (_, recognition) in answers.items()
            if recognition is not Recognition.NO
        }
        speaker_names = {
            name
            for name, (mapper, _) in answers.items()
            if not recognitions.keys().isdisjoint(mapper.info.speaks)
        }
        return {**recognitions, **dict.fromkeys(speaker_names - recognitions.keys(), Recognition.POSSIBLE)}

    def _ask(self, names: Iterable[str]) -> None:
        """Ask the providers *names* that were not asked. A broken one is skipped."""
        for name in names:
            if name in self.answers:
                continue
            try:
                mapper = self._lookup(name)
            except PluginError:
                continue
            best_recognition = Recognition.NO
            is_blind = self.envelope is not None and self._registry.is_shipped(name)
            try:
                for event in () if is_blind else self._events:
                    recognition = ask(mapper.recognizes, event, partial(self.failures.setdefault, name))
                    best_recognition = recognition if recognition > best_recognition else best_recognition
                    if best_recognition is Recognition.CERTAIN:
                        break
            except PluginError as error:
                best_recognition = Recognition.NO
                self.faults.append(error)
            self.answers[name] = mapper, best_recognition


_CANONICAL_KEYS: Final = {"format_version", "metadata", "finish_reason"}
_CHAT_FIELDS: Final = {"id": "c", "created": 1, "model": "m"}
_PLAIN_ANSWERS: Final[tuple[dict[str, Any], ...]] = (
    {
        **_CHAT_FIELDS,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    },
    {
        **_CHAT_FIELDS,
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}],
    },
    {"id": "r", "object": "response", "status": "completed", "model": "m", "output": []},
    {"type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": "end_turn"},
    {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": True, "done_reason": "stop"},
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]},
    {"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}, "stopReason": "end_turn"},
)
"""Answers in the dialects that several servers speak, or that one has to itself, with no mark of anybody else."""


def ask(
    recognizes: Callable[[Any], Recognition | None],
    event: Any,
    note: Callable[[BaseException], object] = lambda error: None,
) -> Recognition:
    """Return how well a provider's hook *recognizes* the event. A hook that fails does not recognize it, and *note* is told.

    Raises:
        PluginError: the hook returns something other than a :class:`Recognition`.
    """
    try:
        return recognizes(event) or Recognition.NO
    except BaseException as error:  # a stranger's code on a payload that need not be his
        if is_cancellation(error) or isinstance(error, PluginError):
            raise
        note(error)
        return Recognition.NO


def recognizing(events: Iterable[Any], registry: Registry, *, among: Iterable[str] | None = None) -> str:
    """Return the one provider that recognizes *events* best.

    Installing a plugin never changes the result if a shipped provider is certain. If a shipped provider is possible, a
    plugin must be certain, and must not be certain of plain answers too.

    Args:
        events: the decoded events of an answer, of which the beginning is enough.
        registry: the registry of the providers.
        among: the ids of the candidates, or ``None`` for all.

    Raises:
        DetectionError: none does, or several do equally. The error lists them.
        PluginError: none does, and one returned something other than a :class:`Recognition`.
    """
    first_events = list(islice(events, MOST_EVENTS))
    if any(isinstance(event, dict) and event.keys() >= _CANONICAL_KEYS for event in first_events[:1]):
        raise DetectionError(
            "this is Crosswalk's canonical JSON, not a server's answer; read it with from_json()"
        )
    wanted_names = None if among is None else frozenset(among)
    inquiry = _Asking(first_events, registry, wanted_names, envelope_of(first_events, registry))
    recognitions = inquiry.shipped()
    if Recognition.CERTAIN not in recognitions.values():
        # A plugin counts if it is certain, or if no shipped provider recognizes the answer.
        other_recognitions = inquiry.others()
        if not recognitions or Recognition.CERTAIN in other_recognitions.values():
            recognitions = other_recognitions
    best_recognition = max(recognitions.values(), default=Recognition.NO)
    names = sorted(name for name, recognition in recognitions.items() if recognition is best_recognition)
    if len(names) == 1:
        return names[0]
    if not names:
        if (key := inquiry.envelope or holder_of(first_events, registry)) is not None:
            raise DetectionError(
                f"there is an answer under {key!r}, in the envelope of a log: pass that value"
            )
        document = other_document(first_events[0]) if len(first_events) == 1 else None
        if document is not None:
            raise DetectionError(f"no provider recognizes this payload: it is no answer, but {document}")
        for fault in sorted(inquiry.faults, key=lambda fault: str(fault.plugin)):
            raise fault
        known_names, broken_names = (
            sorted(inquiry.answers),
            [name for name in registry.names() if name not in inquiry.answers],
        )
        names_text = nameable(known_names, broken_names)
        failure_texts = (
            f"; recognizes of {name!r} failed with {type(error).__name__}{where_raised(error)}"
            for name, error in sorted(inquiry.failures.items())
        )
        raise DetectionError(
            f"no provider recognizes this payload; name one of: {names_text}{''.join(failure_texts)}",
            known=known_names,
            broken=broken_names,
        )
    raise DetectionError(
        f"several providers speak this dialect; name one of: {', '.join(names)}", candidates=names
    )


_ENVELOPE_KEYS: Final = ("output", "response")
_END_KEYS: Final = {"done", "usage"}
"""The keys of the last event of an answer whose text is under ``response``."""
_OBJECT_WORDS: Final = {"chat.completion", "chat.completion.chunk", "response", "text_completion"}


def envelope_of(events: Sequence[Any], registry: Registry) -> str | None:
    """Return the key of the first of *events* that holds a whole answer of a shipped provider, or ``None``.

    Such an event is the line of a log. Providers have ``output`` and ``response`` in their own answers, too, but not around
    an answer with the mark of an API, or around one that names its model. An object as the only ``response`` is nobody's
    whole answer. An event with a ``type`` is its API's own.
    """
    event = events[0] if events else None
    if type(event) is not dict or "type" in event:
        return None
    for key in _ENVELOPE_KEYS:
        value = event.get(key)
        content = _opened(value)
        if content is None:
            continue
        is_text_of_answer = content is not value and not _END_KEYS.isdisjoint(event)
        is_alone = key == "response" and len(event) == 1
        if _is_marked(content) or (
            not is_text_of_answer and _is_answer(content, registry, is_alone=is_alone)
        ):
            return key
    return None


def holder_of(events: Sequence[Any], registry: Registry) -> str | None:
    """Return the key of the first of *events* with an answer of a shipped provider. None recognizes the event itself."""
    event = events[0] if events else None
    if type(event) is not dict:
        return None
    return next(
        (
            key
            for key in sorted(event, key=lambda key: key not in _ENVELOPE_KEYS)
            if (content := _opened(event[key])) is not None
            and (_is_marked(content) or _is_answer(content, registry, is_alone=key in _ENVELOPE_KEYS))
        ),
        None,
    )


def _opened(value: Any) -> dict[str, Any] | list[Any] | None:
    """The object or array that *value* is, or that it is as text, or ``None``."""
    if type(value) is str and value[:1] + value[-1:] in ("{}", "[]"):
        try:
            value = load_json(value)
        except ValueError:
            return None
    return value if type(value) in (dict, list) else None


def _is_marked(value: dict[str, Any] | list[Any]) -> bool:
    if type(value) is not dict:
        return False
    mark = value.get("object")
    is_message = value.get("type") == "message" and value.get("role") == "assistant"
    return is_message or (type(mark) is str and mark in _OBJECT_WORDS)


def _is_answer(value: dict[str, Any] | list[Any], registry: Registry, *, is_alone: bool) -> bool:
    """Whether a shipped provider is certain of *value*, or recognizes it and it names its model or *is_alone*."""
    events = value[:MOST_EVENTS] if type(value) is list else [value]
    if type(value) is list and any("type" in each for each in events if type(each) is dict):
        return False  # the items of an answer
    inquiry = _Asking(events, registry)
    if is_alone or (type(value) is dict and "model" in value):
        return bool(inquiry.shipped())
    return inquiry.is_certain()


def nameable(known: Iterable[str], broken: Iterable[str]) -> str:
    """Return the ids of providers for a message, with the unusable ones separately."""
    known_text, broken_text = ", ".join(known) or "none", ", ".join(broken)
    return f"{known_text} (broken: {broken_text})" if broken_text else known_text


def _of(wanted_names: frozenset[str] | None, recognitions: dict[str, Recognition]) -> dict[str, Recognition]:
    return (
        recognitions
        if wanted_names is None
        else {name: recognition for name, recognition in recognitions.items() if name in wanted_names}
    )


def decode_events(data: bytes, limits: Limits) -> Iterator[Any]:
    """Yield the decoded events of a whole recorded answer, up to the first that is not JSON."""
    with suppress(FramingError):  # detection uses the events before the fault, and reading reports it
        yield from _events(data, limits)


def fault_of(data: bytes, limits: Limits) -> FramingError | None:
    """Return why the next event of a recorded answer cannot be decoded, or ``None`` if all can."""
    try:
        for _ in _events(data, limits):
            pass
    except FramingError as error:
        return error
    return None


def _events(data: bytes, limits: Limits) -> Iterator[Any]:
    decoder = SniffingDecoder(limits)
    for frame, _ in (*decoder.decode(data), *decoder.flush()):
        if frame and not is_done(frame):
            yield load_event(frame, limits, halves="mend")


# ------------------------------------------------------------------------- other documents
# What the same servers send that is no answer of a model.


_ANY: Final = object()
_OTHER_DOCUMENTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("a batch job", {"object": "batch"}),  # OpenAI
    ("a batch job", {"type": "message_batch"}),  # Anthropic
    ("a batch job", {"name": "batches/*"}),  # Gemini
    ("a cache of content", {"name": "*cachedContents/*"}),  # Gemini
    ("embeddings", {"data": [{"object": "embedding"}]}),  # OpenAI
    ("embeddings", {"embedding": _ANY}),  # Gemini, Ollama
    ("embeddings", {"embeddings": _ANY}),  # Gemini, Ollama, Cohere
    ("a moderation", {"results": [{"flagged": _ANY}]}),  # OpenAI
    ("a ranking", {"results": [{"relevance_score": _ANY}]}),  # Cohere
    ("a list of models", {"data": [{"object": "model"}]}),  # OpenAI
    ("a list of models", {"data": [{"type": "model"}]}),  # Anthropic
    ("a list of models", {"models": [{"name": "*"}]}),  # Gemini, Ollama, Cohere
    ("a file", {"object": "file"}),  # OpenAI
    ("a picture", {"data": [{"b64_json": _ANY}]}),  # OpenAI
    ("a picture", {"data": [{"url": _ANY}]}),  # OpenAI
    ("a count of tokens", {"totalTokens": _ANY}),  # Gemini
    ("a count of tokens", {"object": "response.input_tokens"}),  # OpenAI
    ("a transcript", {"text": "*", "usage": _ANY}),  # OpenAI
    ("a transcript", {"text": "*", "segments": _ANY}),  # OpenAI
)
"""Documents that are no answer, by the fields that tell them, from the references of the endpoints that send them."""


def other_document(event: Any) -> str | None:
    """Return what *event*, the only one of its input, which cannot be read as an answer, is, or ``None`` if unknown."""
    if type(event) is dict and event.keys() == {"input_tokens"}:  # Anthropic
        return "a count of tokens"
    return next((name for name, fields in _OTHER_DOCUMENTS if _fits(event, fields)), None)


def _fits(value: Any, wanted: Any) -> bool:
    if wanted is _ANY:
        return True
    if type(wanted) is dict:
        return type(value) is dict and all(
            key in value and _fits(value[key], inner) for key, inner in wanted.items()
        )
    if type(wanted) is list:
        return type(value) is list and bool(value) and _fits(value[0], wanted[0])
    return type(value) is str and fnmatchcase(value, wanted)
