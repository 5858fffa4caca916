"""The parts of a candidate's content (section 2.1), including calls of the client's tools (section 3), and its details."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import repeat
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.plugins import (
    CitationRef,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    CountPaths,
    FieldRow,
    FieldTable,
    MappingState,
    Provenance,
    ResponseDelta,
    SafetyAnnotation,
    Said,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCallDelta,
    UsageDetails,
    UsageInfo,
    accept_count,
    accept_logprobs,
    accept_object,
    accept_objects,
    accept_string,
    dump_json,
    gemini as wire,
    leave_mistyped,
    look_at,
    look_at_count,
    take_boolean,
    take_number,
    take_object,
    take_objects,
    take_string,
    take_whole,
    wrong_type,
)

# ------------------------------------------------------------------------------- arguments
# The arguments of a tool call that come path by path, as JSON text that grows (section 3, Vertex).


Path: TypeAlias = tuple[str | int, ...]

_STEP_PATTERN = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
_INDEX_GROUP = 2  # the group of a place in an array
_PATH_PATTERN = re.compile(rf"\$(?:{_STEP_PATTERN.pattern})+")

_VALUE_READERS: dict[str, Callable[[dict[str, Any], str], str | float | bool | None]] = {
    "stringValue": take_string,
    "numberValue": take_number,
    "boolValue": take_boolean,
}


class ArgumentsWriter:
    """Writes one JSON object value by value, in the order of the model, without corrections."""

    def __init__(self) -> None:
        self._open_keys: list[str | int] = []  # of the containers that are open inside the object
        self._used_keys: list[set[str | int]] = []  # of each open container, the object itself first
        self._string_path: Path | None = None  # that of the string that is open

    def write(self, piece: dict[str, Any]) -> str:
        """Return the text that *piece* adds, or ``""`` if it has no value, and is not changed.

        Args:
            piece: ``{jsonPath, stringValue | numberValue | boolValue | nullValue}``. A string at the path of the
                string before continues it.

        Raises:
            WireTypeError: a leaf has another type, or the path leads to a part that is already written.
        """
        kind = next((key for key in _VALUE_READERS if piece.get(key) is not None), None)
        if kind is None and "nullValue" not in piece:
            return ""
        if kind is None and piece["nullValue"] not in (None, "NULL_VALUE"):
            raise wrong_type(piece, "nullValue", "null")
        piece.pop("nullValue", None)
        value = None if kind is None else _VALUE_READERS[kind](piece, kind)
        path = _path(piece)
        if type(value) is not str:
            text = self._go_to(path, piece) + dump_json(value).decode()
        elif path == self._string_path:
            text = _escaped(value)
        else:
            text = f'{self._go_to(path, piece)}"{_escaped(value)}'
            self._string_path = path
        del piece["jsonPath"]
        return text

    def close(self) -> str:
        """Return the text that ends the object, or ``""`` if nothing was written."""
        if not self._used_keys:
            return ""
        closing = self._close_to(0) + "}"
        self._used_keys.clear()
        return closing

    def _close_to(self, depth: int) -> str:
        """Close the string that is open, and the containers that are deeper than *depth*."""
        closers = "" if self._string_path is None else '"'
        self._string_path = None
        while len(self._open_keys) > depth:
            self._open_keys.pop()
            closers += "]" if 0 in self._used_keys.pop() else "}"
        return closers

    def _go_to(self, path: Path, piece: dict[str, Any]) -> str:
        """Close and open containers, up to the key or the comma before the value at *path*, which *piece* has."""
        shared_depth = 0
        while (
            shared_depth < min(len(self._open_keys), len(path) - 1)
            and self._open_keys[shared_depth] == path[shared_depth]
        ):
            shared_depth += 1
        text = self._close_to(shared_depth)
        if not self._used_keys:
            self._used_keys.append(set())
            text = "{"
        for position, key in enumerate(path[shared_depth:], shared_depth):
            used_keys = self._used_keys[-1]
            expected_index = len(used_keys) if 0 in used_keys or not used_keys else None
            fits = key == expected_index if type(key) is int else 0 not in used_keys and key not in used_keys
            if not fits:
                raise wrong_type(piece, "jsonPath", "a path that leads on")
            if used_keys:
                text += ","
            used_keys.add(key)
            if type(key) is str:
                text += f"{orjson.dumps(key).decode()}:"
            if position < len(path) - 1:
                self._open_keys.append(key)
                self._used_keys.append(set())
                text += "{" if type(path[position + 1]) is str else "["
        return text


def _path(piece: dict[str, Any]) -> Path:
    """Return the keys of ``$.operations[0].action``. The first one is a name, because arguments are an object."""
    text = piece.get("jsonPath")
    if type(text) is str and _PATH_PATTERN.fullmatch(text):
        steps = ((step.lastindex or 0, step) for step in _STEP_PATTERN.finditer(text))
        keys = tuple(int(step[group]) if group == _INDEX_GROUP else step[group] for group, step in steps)
        if type(keys[0]) is str:
            return keys
    raise wrong_type(piece, "jsonPath", "a JSON path")


def _escaped(text: str) -> str:
    return orjson.dumps(text)[1:-1].decode()


# ----------------------------------------------------------------------------------- parts
# The parts of a candidate's content (section 2.1), including calls of the client's tools (section 3), and its details.
#
# The details are citations, safety ratings, log probabilities and token counts (sections 5 and 8). Citations and
# ratings
# also stay in the extensions, because the segments only have the fields that all providers share.


_SIGNATURE_KEYS: Final = {"thought", "thoughtSignature"}
"""The fields of a part that has nothing but a signature."""


@attrs.frozen
class Citation:
    """A source and the words that rely on it.

    Attributes:
        source: the source, without a span.
        start: the first byte of the words in the text.
        end: the byte after them, or ``None`` if the provider sends none.
        words: the words, or ``None`` if the provider sends none.
        about: more about the source, for the segment's metadata.
    """

    source: CitationRef
    start: int = 0
    end: int | None = None
    words: str | None = None
    about: dict[str, str] = attrs.Factory(dict)


@attrs.define(eq=False, repr=False)
class Answer:
    """One candidate so far.

    Attributes:
        choice: its number.
        said: the pieces of its text, without thoughts.
        is_thinking: whether the last of its pieces was a thought.
        has_output: whether it has text, a call of a client's tool, or media.
        writer: writes the arguments of the streamed call, or ``None`` without any.
        word: its first finish word, which old servers send with every chunk, or ``None`` before.
        citations: its cited words, in order.
        grounding: its cited words by search. The last report is complete.
        ratings: the last verdicts above harmless.
        shown: the segments of these, so that repetitions come once.
    """

    choice: int
    said: list[str] = attrs.Factory(list)
    is_thinking: bool = False
    has_output: bool = False
    writer: ArgumentsWriter | None = None
    word: str | None = None
    citations: list[Citation] = attrs.Factory(list)
    grounding: list[Citation] = attrs.Factory(list)
    ratings: tuple[SafetyAnnotation, ...] = ()
    shown: set[Segment] = attrs.Factory(set)

    def part_deltas(self, part: dict[str, Any], state: MappingState) -> Iterable[ResponseDelta]:
        """Return the deltas of one part. A part of an unknown kind has none, and stays in the extensions.

        A signature belongs to the part that carries it. Text, reasoning and calls are streamed as deltas
        without signatures. It follows them in an empty segment of the same type, which is joined to them.

        Raises:
            WireTypeError: the content of the part, or its ``thought``, has a wrong type.
        """
        if "text" not in part and part.keys().isdisjoint(wire.PARTS) and part.keys() - _SIGNATURE_KEYS:
            state.note_unknown_part()
        said = _PartSaid()
        said.answer, said.choice = self, self.choice
        if "thought" in part:
            said.thought = take_boolean(part, "thought")
        if "thoughtSignature" in part:
            said.signature = accept_string(part, "thoughtSignature")
        is_shown = said.thought and not part.keys().isdisjoint(wire.MEDIA)
        PART.read(part, said, state)
        if said.signature and not said.is_signed:
            said.show(SegmentType.REASONING if said.thought else said.kind, "", said.sign())
        if said.thought is not None and not said.has_text and not is_shown:
            part["thought"] = said.thought  # nothing shows it
        return said.deltas if said.error is None else said.speak()

    def call_deltas(self, call: dict[str, Any], state: MappingState) -> Iterator[ToolCallDelta]:
        """A whole call, or a fragment of one whose arguments are streamed (section 3).

        Raises:
            WireTypeError: it has no name and continues no call, or a leaf has a wrong type.
        """
        choice = self.choice
        args = take_object(call, "args")
        pieces = take_objects(call, "partialArgs") if "partialArgs" in call else []
        goes_on = take_boolean(call, "willContinue") if "willContinue" in call else None
        if goes_on is not None:
            call["willContinue"] = goes_on  # at the end of a call nothing else shows it
        is_named, has_id = call.get("name") not in (None, ""), call.get("id") not in (None, "")
        self.has_output = True
        if is_named:
            yield from self.call_end(state)
            arguments = None
            if pieces or goes_on:
                self.writer = ArgumentsWriter()
            elif args is not None:
                arguments = dump_json(args).decode()
                args.clear()
            yield state.take_tool_call(call, arguments=arguments, choice=choice, whole=True)
        elif args or (self.writer is None and (pieces or has_id or not state.has_tool_calls(choice))):
            # Without all of these it ends a call that has ended already.
            raise wrong_type(call, "name", "a tool's name")
        if self.writer is not None:
            text = "".join(map(self.writer.write, pieces))
            if has_id and not is_named:
                yield state.take_tool_call(call, arguments=text, choice=choice)
            elif text:
                yield state.tool_call(arguments=text, choice=choice)
            if not goes_on:
                yield from self.call_end(state)

    def call_end(self, state: MappingState) -> Iterator[ToolCallDelta]:
        """The end of the call that is being streamed, where one is."""
        if self.writer is not None:
            closing, self.writer = self.writer.close(), None
            if closing:
                yield state.tool_call(arguments=closing, choice=self.choice)

    def note_sides(self, candidate: dict[str, Any], state: MappingState) -> None:
        """Read the citations and the ratings of *candidate*, for :meth:`segments_beside`."""
        if "citationMetadata" in candidate and (citations := accept_object(candidate, "citationMetadata")):
            for name in ("citations", "citationSources"):  # Vertex, the Gemini API
                self.citations += map(_citation, accept_objects(citations, name))
        if "groundingMetadata" in candidate and (grounding := accept_object(candidate, "groundingMetadata")):
            self.grounding = _grounding(grounding) or self.grounding
        if candidate.get("safetyRatings") is not None:
            self.ratings = _ratings(candidate, state)

    def segments_beside(self) -> Iterator[Segment]:
        """Return the details of the whole answer, for its end, so that they do not split the text. Each once."""
        segments = self._cited()
        if self.ratings:
            segments.append(Segment(SegmentType.SAFETY, "", annotations=self.ratings))
        for segment in segments:
            if segment not in self.shown:
                self.shown.add(segment)
                yield segment
        self.citations, self.grounding, self.ratings = [], [], ()

    def _cited(self) -> list[Segment]:
        """Return the sources of the text, a segment for each source of each cited text."""
        text = "".join(self.said)
        text_utf8 = text.encode()
        segments = []
        for citation in (*self.citations, *self.grounding):
            ref = attrs.evolve(citation.source, span=_span(text, text_utf8, citation))
            segments.append(Segment(SegmentType.CITATION, citation.words or "", citation.about, (ref,)))
        return segments


class Answers(dict[int, Answer]):
    """The candidates of one response by their number, created on first use."""

    def add_repeated(self, texts: Mapping[int, list[str]]) -> None:
        """Take the *texts* of repeated events, by candidate."""
        for choice, pieces in texts.items():
            answer = self[choice]
            if not answer.is_thinking:
                answer.said += pieces

    def __missing__(self, choice: int) -> Answer:
        answer = self[choice] = Answer(choice)
        return answer


class _PartSaid(Said):
    """What a part says.

    Attributes:
        answer: the candidate.
        thought: whether it is one, ``None`` if it does not say so.
        signature: that of the part, or ``None``.
        is_signed: whether a segment carries it.
        has_text: whether it has a text.
        kind: the type of an empty segment for the signature.
    """

    answer: Answer
    thought: bool | None = None
    signature: str | None = None
    is_signed = False
    has_text = False
    kind = SegmentType.TEXT

    def sign(self) -> dict[str, str]:
        """The signature as metadata of a segment, which then carries it."""
        self.is_signed = True
        return {"signature": self.signature} if self.signature else {}

    def show(self, kind: SegmentType, content: str, metadata: dict[str, Any]) -> None:
        """Add a segment."""
        self.deltas.append(ResponseDelta(segment=Segment(kind, content, metadata), choice=self.choice))


def _take_text(part: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    text = take_string(part, key)
    if not text:
        return
    said.has_text, answer = True, said.answer
    answer.is_thinking = bool(said.thought)
    if said.thought:
        said.deltas.append(ResponseDelta(reasoning_delta=text, choice=said.choice))
    else:
        answer.said.append(text)
        answer.has_output = True
        said.deltas.append(ResponseDelta(content_delta=text, choice=said.choice))


def _take_call(part: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    call = take_object(part, key)
    if call is not None:
        said.kind = SegmentType.TOOL_CALL
        for fragment in said.answer.call_deltas(call, state):
            said.deltas.append(ResponseDelta(tool_call_delta=fragment, choice=said.choice))


def _take_media(part: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    data = take_object(part, key)
    if data is None:
        return
    field, encoding = wire.MEDIA[key]
    metadata: dict[str, Any] = {"encoding": encoding, **said.sign()}
    for name, ours in wire.MEDIA_FIELDS.items():
        if value := accept_string(data, name):
            metadata[ours] = value
    content = take_string(data, field) or ""
    said.answer.has_output = said.answer.has_output or not said.thought
    if said.thought:
        metadata["thought"] = True
    said.show(SegmentType.MEDIA, content, metadata)


def _take_server_tool(part: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    item = take_object(part, key)
    if item is None:
        return
    field, is_json = wire.SERVER_TOOLS[key]
    tool_input = take_object(item, field) if is_json else take_string(item, field)
    content = tool_input or "" if isinstance(tool_input, str | None) else dump_json(tool_input).decode()
    item.pop(field, None)
    said.show(SegmentType.TOOL_CALL, content, {"type": key, **take_whole(item), **said.sign()})


PART: Final = FieldTable(
    {
        "text": FieldRow("text", _take_text),
        "functionCall": FieldRow("tool_calls", _take_call),
        **dict.fromkeys(wire.MEDIA, FieldRow("segments", _take_media)),
        **dict.fromkeys(wire.SERVER_TOOLS, FieldRow("segments", _take_server_tool)),
    },
    at="candidates[].content.parts[]",
)
"""What a part says."""


def _citation(item: dict[str, Any]) -> Citation:
    start, end = _place(item)
    title_and_license = {name: look_at(item, name, str) for name in ("title", "license")}
    source = CitationRef(source=look_at(item, "uri", str))
    return Citation(
        source, start, end, None, {name: value for name, value in title_and_license.items() if value}
    )


def _place(item: dict[str, Any]) -> tuple[int, int | None]:
    """Return the first cited byte, which is absent if it is 0, and the byte after the last, or ``None`` if unknown."""
    start, end = (look_at_count(item, name) for name in ("startIndex", "endIndex"))
    return start or 0, None if start is None and item.get("startIndex") is not None else end


def _grounding(grounding: dict[str, Any]) -> list[Citation]:
    """Yield each support with each of its sources, then the sources without a support."""
    accept_objects(grounding, "groundingChunks")  # notes wrong items
    chunks = grounding.get("groundingChunks")
    sources = {
        number: _source(chunk)
        for number, chunk in enumerate(chunks if type(chunks) is list else ())
        if type(chunk) is dict
    }
    citations: list[Citation] = []
    used_numbers: set[int] = set()
    for support in accept_objects(grounding, "groundingSupports"):
        segment = accept_object(support, "segment") or {}
        text = look_at(segment, "text", str)
        start, end = _place(segment)
        indices = _indices(support)
        used_numbers.update(indices)
        support_sources = [sources[index] for index in indices if index in sources]
        citations += [
            Citation(ref, start, end, text, metadata)
            for ref, metadata in support_sources or [(CitationRef(), {})]
        ]
    unused_sources = [source for number, source in sources.items() if number not in used_numbers]
    return citations + [
        Citation(ref, about=metadata) for ref, metadata in unused_sources if ref.source or metadata
    ]


def _indices(support: dict[str, Any]) -> list[int]:
    """Return the sources of a support."""
    indices = support.get("groundingChunkIndices")
    valid_indices = (
        [index for index in indices if type(index) is int and index >= 0] if type(indices) is list else []
    )
    if indices is not None and valid_indices != indices:
        leave_mistyped(support, "groundingChunkIndices")
    return valid_indices


def _source(chunk: dict[str, Any]) -> tuple[CitationRef, dict[str, str]]:
    """Reference and title of ``{web | retrievedContext | maps | image: {…}}``."""
    for kind in ("web", "retrievedContext", "maps", "image"):
        if kind in chunk and (origin := accept_object(chunk, kind)) is not None:
            names = [look_at(origin, name, str) for name in ("uri", "sourceUri", "imageUri")]
            ids = [look_at(origin, name, str) for name in ("placeId", "documentName")]
            title = look_at(origin, "title", str)
            ref = CitationRef(next(filter(None, ids), None), next(filter(None, names), None))
            return ref, {"title": title} if title else {}
    return CitationRef(), {}


def _span(text: str, text_utf8: bytes, citation: Citation) -> tuple[int, int] | None:
    """Return the cited characters of *text*, or ``None`` if they are not found.

    The API counts UTF-8 bytes. If it also sends the words, they take precedence.
    """
    start, end, words = citation.start, citation.end, citation.words
    if end is not None and start <= end <= len(text_utf8):
        with suppress(UnicodeDecodeError):
            first_character, cited_text = len(text_utf8[:start].decode()), text_utf8[start:end].decode()
            if words in (None, cited_text):
                return first_character, first_character + len(cited_text)
    if words and text.count(words) == 1:
        first_character = text.index(words)
        return first_character, first_character + len(words)
    return None


_CATEGORIES = {
    "HARM_CATEGORY_HATE_SPEECH": ContentFilterCategory.HATE,
    "HARM_CATEGORY_SEXUALLY_EXPLICIT": ContentFilterCategory.SEXUAL,
}
_SEVERITIES = {
    "NEGLIGIBLE": ContentFilterSeverity.SAFE,
    "LOW": ContentFilterSeverity.LOW,
    "MEDIUM": ContentFilterSeverity.MEDIUM,
    "HIGH": ContentFilterSeverity.HIGH,
}
_MOST_WORDS = 100
_HARMLESS = (None, "NEGLIGIBLE", "1", "HARM_PROBABILITY_UNSPECIFIED", "0")


def blocked_segment(feedback: dict[str, Any], block_reason: str, state: MappingState) -> Segment:
    """The verdict on a prompt that was blocked for *block_reason*."""
    verdict = SafetyAnnotation(block_reason, blocked=True)
    return Segment(
        SegmentType.SAFETY, "", {"of": "prompt"}, annotations=(verdict, *_ratings(feedback, state))
    )


def _ratings(container: dict[str, Any], state: MappingState) -> tuple[SafetyAnnotation, ...]:
    """Return the ratings above harmless. All ratings of a canonical category are judged."""
    annotations = []
    for rating in accept_objects(container, "safetyRatings"):
        category = _word(rating, "category") or "HARM_CATEGORY_UNSPECIFIED"
        level = _word(rating, "probability")
        blocked = look_at(rating, "blocked", bool) or False
        if category in _CATEGORIES and level in _SEVERITIES:
            state.judge(ContentFilterResult(_CATEGORIES[category], _SEVERITIES[level], blocked))
        if blocked or level not in _HARMLESS:
            annotations.append(SafetyAnnotation(category, level, blocked))
    return tuple(annotations)


def _word(rating: dict[str, Any], key: str) -> str | None:
    """The word of an enum, or its number as a word."""
    return number_word(rating.get(key)) or look_at(rating, key, str)


_TOOL_USE_KEY = "toolUsePromptTokenCount"
_PROMPT_KEYS = (wire.COUNTS["prompt_tokens"], _TOOL_USE_KEY)
_CANDIDATES_KEY, _THOUGHTS_KEY = _COMPLETION_KEYS = (
    wire.COUNTS["completion_tokens"],
    wire.COUNTS["reasoning_tokens"],
)
_CACHED_KEY, _TOTAL_KEY = wire.COUNTS["cached_tokens"], wire.COUNTS["total_tokens"]
_COUNT_KEYS = (*_PROMPT_KEYS, *_COMPLETION_KEYS, _CACHED_KEY)
_COUNT_PATHS = CountPaths({key: key for key in _COUNT_KEYS})
_INPUT, _OUTPUT, _INPUT_KEY = wire.MODALITIES.values()
_MODALITY_KEYS = {_INPUT: True, "toolUsePromptTokensDetails": False, _OUTPUT: True, _INPUT_KEY: True}
"""The lists of counts by modality, and whether what is read of one is taken."""
_NO_KEYS: frozenset[str] = frozenset()
_NO_COUNTS: Mapping[str, int] = {}


@attrs.define(eq=False, repr=False)
class _Counts:
    """The counts so far.

    Attributes:
        last: the last value of each count. They are cumulative, and zeros are absent.
        modalities: the last value of each list of counts by modality, by its name.
        details: the counts by modality, made of the lists.
        prompt_list: the last list of the prompt's counts, as JSON, if all of it was taken. A stream repeats it.
        total_is_kept: whether a total exceeded the sum of the counts. From then on every total stays, because an old one
            would look like the last.
    """

    last: dict[str, int] = attrs.Factory(dict)
    modalities: dict[str, dict[str, int]] = attrs.Factory(dict)
    details: UsageDetails = UsageDetails.EMPTY
    prompt_list: bytes = b""
    total_is_kept: bool = False


def usage_info(chunk: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """Return the counts so far, or ``None`` if *chunk* has none.

    The API counts tool results and thoughts separately. Tool results count as prompt and thoughts as completion. The
    count of tool results also stays in the extensions, because no typed field has it.
    """
    usage = accept_object(chunk, "usageMetadata")
    if not usage:
        return None
    counts = state.own(_Counts)
    sent_counts = _COUNT_PATHS.accept(usage)
    mistyped_keys = usage.keys() & _COUNT_KEYS if len(usage) > (_TOTAL_KEY in usage) else _NO_KEYS
    if _TOOL_USE_KEY in sent_counts:
        usage[_TOOL_USE_KEY] = sent_counts[_TOOL_USE_KEY]
    total = accept_count(usage, _TOTAL_KEY)
    if total is not None:
        known_total = sum(sent_counts.values()) - sent_counts.get(_CACHED_KEY, 0)
        if counts.total_is_kept or total != known_total:
            counts.total_is_kept = True
            usage[_TOTAL_KEY] = total
    details = _details(usage, counts, state)
    if not sent_counts and details is UsageDetails.EMPTY:
        return None
    last_counts = counts.last
    last_counts.update(sent_counts)
    # The wire counts that make up each canonical one, or none if some are unknown.
    is_twice = _THOUGHTS_KEY in last_counts and _are_thoughts_counted_twice(last_counts, total)
    names = _COMPLETION_KEYS[:1] if is_twice else _COMPLETION_KEYS
    known_keys = last_counts.keys()
    prompt_keys = known_keys & _PROMPT_KEYS if mistyped_keys.isdisjoint(_PROMPT_KEYS) else _NO_KEYS
    completion_keys = known_keys & names if mistyped_keys.isdisjoint(names) else _NO_KEYS
    info = state.usage_info(
        sum(map(last_counts.__getitem__, prompt_keys)) if prompt_keys else None,
        sum(map(last_counts.__getitem__, completion_keys)) if completion_keys else None,
        cached_tokens=last_counts.get(_CACHED_KEY),
        reasoning_tokens=last_counts.get(_THOUGHTS_KEY),
        details=details,
    )
    if len(prompt_keys) > 1:
        state.note("usage.prompt_tokens", Provenance.DERIVED)
    if len(completion_keys) > 1:
        state.note("usage.completion_tokens", Provenance.DERIVED)
    return info


def _details(usage: dict[str, Any], counts: _Counts, state: MappingState) -> UsageDetails:
    """The counts by modality so far. Those of the tools' results are part of the prompt, and stay where they are as well."""
    encoded_list = _as_json(usage.get(_INPUT))
    if encoded_list and encoded_list == counts.prompt_list:
        del usage[_INPUT]  # taken before, all of it
    modalities, is_new = counts.modalities, False
    for name, is_taken in _MODALITY_KEYS.items():
        if name in usage:
            modalities.setdefault(name, {}).update(
                accept_modalities(usage, name, "tokenCount", take=is_taken)
            )
            is_new = True
    if is_new:
        prompt_counts, tool_counts, output_counts, cached_counts = map(
            modalities.get, _MODALITY_KEYS, repeat(_NO_COUNTS)
        )
        counts.details = details_of(prompt_counts, tool_counts, output_counts, cached_counts, state)
        counts.prompt_list = b"" if encoded_list and any(usage.get(_INPUT, ())) else encoded_list
    return counts.details


def _as_json(items: Any) -> bytes:
    """The array *items* as JSON, or nothing if it is none, or nested deeper than that can be written."""
    if type(items) is not list:
        return b""
    try:
        return dump_json(items)
    except TypeError:
        return b""


def accept_modalities(
    usage: dict[str, Any], key: str, count_key: str, *, take: bool = True
) -> dict[str, int]:
    """Return the token counts by modality in the array under *key*. Those of unknown modalities stay.

    Args:
        usage: the object that has the array.
        key: its name.
        count_key: the key of each item's count.
        take: whether to take the counts from the object.
    """
    tokens_by_modality: dict[str, int] = {}
    for item in accept_objects(usage, key):
        modality = item.get("modality")
        name = modality.lower() if isinstance(modality, str) else ""
        if name not in ("text", "audio", "image", "video") or name in tokens_by_modality:
            continue
        tokens = accept_count(item, count_key) if take else look_at_count(item, count_key)
        if tokens is not None:
            tokens_by_modality[name] = tokens
            if take:
                del item["modality"]
    return tokens_by_modality


def details_of(
    prompt_counts: Mapping[str, int],
    tool_counts: Mapping[str, int],
    output_counts: Mapping[str, int],
    cached_counts: Mapping[str, int],
    state: MappingState,
) -> UsageDetails:
    """Counts by modality: of the prompt, of the tools' results, which are part of it, of the output and the cache."""
    counts: dict[str, int] = {}
    lists = (("input", prompt_counts), ("output", output_counts), ("cache_read", cached_counts))
    for ending, tokens_by_modality in lists:
        for name, tokens in tokens_by_modality.items():
            counts[f"{name}_{ending}_tokens"] = tokens
    for name, tokens in tool_counts.items():
        key = f"{name}_input_tokens"
        if key in counts:
            state.note(f"usage.details.{key}", Provenance.DERIVED)
        counts[key] = counts.get(key, 0) + tokens
    return UsageDetails(**counts)


def _are_thoughts_counted_twice(last_counts: dict[str, int], total: int | None) -> bool:
    """Whether a gateway has the thoughts in ``candidatesTokenCount`` too: then the total is reached without them."""
    if not last_counts.get(_THOUGHTS_KEY) or not last_counts.get(_CANDIDATES_KEY):
        return False
    return total == sum(map(last_counts.get, (*_PROMPT_KEYS, _CANDIDATES_KEY), repeat(0)))


def take_logprobs(candidate: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Take the tokens of ``logprobsResult``, each with the likeliest ones at its position, which are in a separate list."""
    logprobs_result = accept_object(candidate, "logprobsResult") or {}
    chosen_tokens = accept_logprobs(logprobs_result, "chosenCandidates", logprob="logProbability")
    if logprobs_result.get("topCandidates") is None:
        return chosen_tokens
    top_entries = accept_objects(logprobs_result, "topCandidates")
    if len(top_entries) != len(chosen_tokens or ()):
        if "topCandidates" in logprobs_result:  # an empty list is taken
            leave_mistyped(logprobs_result, "topCandidates")
        return chosen_tokens
    likeliest_tokens = [accept_logprobs(top, "candidates", logprob="logProbability") for top in top_entries]
    if not any(top_entries) and len(top_entries) == len(logprobs_result.get("topCandidates", ())):
        logprobs_result.pop("topCandidates", None)
    return tuple(
        TokenLogprob(token.token, token.logprob, token.bytes, top or ())
        for token, top in zip(chosen_tokens or (), likeliest_tokens, strict=True)
    )


def number_word(value: Any) -> str | None:
    """Return the word of an enum's number, or ``None`` for other values and unknown numbers."""
    return str(value) if type(value) is int and 0 <= value < _MOST_WORDS else None
