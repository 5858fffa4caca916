"""Building blocks for the plugins of any dialect: log probabilities, content blocks and totals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, Final

import attrs

from crosswalk.plugin.state import (
    MappingState,
    accept_array,
    is_number,
    leave_mistyped,
    take_count,
    take_object,
    take_string,
)
from crosswalk.types.answer import Texts
from crosswalk.types.delta import ResponseDelta, said
from crosswalk.types.json import dump_json
from crosswalk.types.usage import Provenance, UsageInfo
from crosswalk.types.values import Segment, SegmentType, TokenLogprob, token_logprob

# -------------------------------------------------------------------------------- logprobs
# Token log probabilities in the shapes that servers send them: a side of the answer, so what is amiss stays where it
# is.


def accept_logprobs(
    container: dict[str, Any],
    key: str,
    *,
    token: str = "token",
    logprob: str = "logprob",
    top: str = "top_logprobs",
) -> tuple[TokenLogprob, ...] | None:
    """Take the entries ``{token, logprob, bytes?, top_logprobs?}`` under *key*, as OpenAI's chat and Ollama send them.

    A list with an entry without token, or with a log probability that is not a number, stays complete and is noted as
    ``mistyped``. Bytes or alternatives of a wrong type stay in their entry, like its extra fields.

    Args:
        container: the object that has the list.
        key: its key.
        token: the key of an entry's token, likewise *logprob*, and *top* for the likeliest tokens at its position.

    Returns:
        The tokens, or ``None`` without a list, for an empty one, and for one that stays.
    """
    items = container.get(key)
    if type(items) is not list or not items:
        accept_array(container, key)
        return None
    for item in items:
        number = item.get(logprob) if type(item) is dict else ""
        if not (number is None or is_number(number)) or type(item.get(token)) is not str:
            leave_mistyped(container, key)
            return None
    entries = []
    has_more = False
    for item in items:
        sent_bytes = item.pop("bytes", None)
        if sent_bytes is not None:
            token_bytes = _as_bytes(sent_bytes)
            if token_bytes is None:
                item["bytes"] = sent_bytes
                leave_mistyped(item, "bytes")
            sent_bytes = token_bytes
        alternatives = None
        if top in item:
            alternatives = accept_logprobs(item, top, token=token, logprob=logprob, top=top)
        entries.append(
            token_logprob(item.pop(token), item.pop(logprob, None), sent_bytes, alternatives or ())
        )
        has_more = has_more or bool(item)
    if not has_more:
        del container[
            key
        ]  # there may be tens of thousands, so entries without extra fields are removed together
    return tuple(entries)


def _is_token(token: Any, logprob: Any) -> bool:
    return type(token) is str and (logprob is None or is_number(logprob))


def _as_bytes(value: Any) -> tuple[int, ...] | None:
    """Return *value* as bytes, or ``None`` if it is not a list of integers from 0 to 255."""
    if type(value) is not list or not _INTEGER_TYPES.issuperset(map(type, value)):
        return None
    try:
        return tuple(bytes(value))
    except ValueError:
        return None


_INTEGER_TYPES: Final = frozenset({int})


_LIST_KEYS: Final = ("tokens", "token_logprobs", "top_logprobs")


def accept_legacy_logprobs(logprobs: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Take the parallel lists ``{tokens, token_logprobs, top_logprobs?}`` of OpenAI's completions.

    Lists of different lengths, or with other values, stay unchanged and are noted as ``mistyped``.

    Returns:
        The tokens, or ``None`` without any, or if they stay.
    """
    tokens, logprob_values, tops = (logprobs.get(name) for name in _LIST_KEYS)
    if not (
        type(tokens) is list
        and type(logprob_values) is list
        and (tops is None or type(tops) is list)
        and len(tokens) == len(logprob_values) == len(tops or tokens)
        and all(map(_is_token, tokens, logprob_values))
        and all(map(_is_table, tops or ()))
    ):
        leave_mistyped(logprobs, "tokens")
        return None
    for name in _LIST_KEYS:
        logprobs.pop(name, None)
    entries = [
        TokenLogprob(token, value, None, tuple([TokenLogprob(*other) for other in (table or {}).items()]))
        for token, value, table in zip(tokens, logprob_values, tops or [None] * len(tokens), strict=True)
    ]
    return tuple(entries) or None


def _is_table(value: Any) -> bool:
    return value is None or (type(value) is dict and all(map(_is_token, value, value.values())))


def logprob_of(token: TokenLogprob) -> dict[str, Any]:
    """*token* as such an entry: the reverse of :func:`accept_logprobs`."""
    return {**_entry_of(token), "top_logprobs": [_entry_of(top) for top in token.top]}


def _entry_of(token: TokenLogprob) -> dict[str, Any]:
    token_bytes = None if token.bytes is None else list(token.bytes)
    return {"token": token.token, "logprob": token.logprob, "bytes": token_bytes}


# ---------------------------------------------------------------------------------- blocks
# Answers made of content blocks: separating their texts, and finding the block of an event.
#
# An empty segment is joined to the preceding text of its type, as for a signature that follows streamed reasoning. An
# empty segment without metadata ends that text, so that two blocks of the same type stay separate.


@attrs.define(eq=False, repr=False)
class Block:
    """A content block while it arrives.

    Attributes:
        index: its position in the answer.
        kind: the provider's word for its kind, or ``""`` if it sends none.
        is_stopped: whether its end has arrived.
        is_whole: whether it is a call with complete arguments from the start, without pieces.
        held: the metadata of its segment, delivered when it is complete, by the provider's name for it.
        pieces: the pieces of the input of a server tool's call.
    """

    index: int
    kind: str = ""
    is_stopped: bool = False
    is_whole: bool = False
    held: dict[str, dict[str, Any]] = attrs.Factory(dict)
    pieces: list[str] = attrs.Factory(list)


class Blocks(Texts):
    """The content blocks of one message, in order of appearance.

    Attributes:
        index_key: the key of an event's block index.
        known: the blocks by index.
        last: the block of pieces without an index, or ``None`` before the first.
    """

    index_key: ClassVar[str] = "index"

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, Block] = {}
        self.last: Block | None = None
        self._waiting_blocks: dict[Block, None] = {}  # those that hold something, in order

    def open(self, index: int, kind: str = "") -> Block:
        """A new block, which is the last one now."""
        block = self.last = self.known[index] = Block(index, kind)
        return block

    def take_index(self, event: dict[str, Any]) -> int | None:
        """Take the index of *event*'s block, or ``None`` for the last one.

        Raises:
            WireTypeError: it is not a count.
        """
        return take_count(event, self.index_key)

    def find(self, index: int | None) -> Block | None:
        """Return the block of that *index*, or ``None`` if it has not begun."""
        return self.last if index is None else self.known.get(index)

    def stop(self, event: dict[str, Any]) -> Iterable[ResponseDelta]:
        """Return the deltas of the end of *event*'s block. An index without an open block stays in the event."""
        index = self.take_index(event)
        block = self.find(index)
        if index is not None and (block is None or block.is_stopped):
            event[self.index_key] = index
        if block is None:
            return ()
        block.is_stopped = True
        return self.complete(block)

    def flush(self) -> Iterable[ResponseDelta]:
        """The deltas of what waits for the end of its block: something else came in its place."""
        return [delta for block in [*self._waiting_blocks] for delta in self.complete(block)]

    def hold(self, block: Block, name: str, about: dict[str, Any]) -> None:
        """Keep *about* until *block* is complete."""
        block.held[name] = about
        self._waiting_blocks[block] = None

    def complete(self, block: Block) -> Iterable[ResponseDelta]:
        """The deltas of what *block*, which is over, has held."""
        if not block.held:
            return ()
        self._waiting_blocks.pop(block, None)
        held_metadata, block.held = block.held, {}
        return [
            self.insert(self.held_segment(block, name, metadata)) for name, metadata in held_metadata.items()
        ]

    def held_segment(self, block: Block, name: str, about: dict[str, Any]) -> Segment:
        """The segment of what was held under *name*: a call of a server's tool, with its input, in JSON, as the content."""
        tool_input = about.pop("input", None)
        text = "".join(block.pieces) or ("" if tool_input is None else dump_json(tool_input).decode())
        block.pieces.clear()
        return Segment(SegmentType.TOOL_CALL, text, about)

    def call(
        self, block: Block, wire: dict[str, Any], state: MappingState, *, id: str = "id"
    ) -> ResponseDelta:
        """The delta of a call that *wire* begins, under the key *id* its id: with all of its ``input``, or pieces to come.

        Raises:
            WireTypeError: its id, its name or its input has another type.
        """
        tool_input = take_object(wire, "input")
        wire.pop("input", None)
        block.is_whole = bool(tool_input)
        self.end()
        text = dump_json(tool_input).decode() if tool_input else None
        call = state.take_tool_call(wire, index=block.index, id=id, arguments=text, whole=True)
        return said(None, None, call)

    def argue(
        self, block: Block, wire: dict[str, Any], key: str, state: MappingState
    ) -> Iterable[ResponseDelta]:
        """Return the delta of the text under *key*, more of a call's input. The input of a server's tool waits for its end.

        Raises:
            WireTypeError: it is not a string.
        """
        piece = take_string(wire, key)
        if not piece:
            return ()
        if block.is_whole:
            wire[key] = piece
            return ()
        if block.held:
            block.pieces.append(piece)
            return ()
        self.end()
        return (said(None, None, state.tool_call(index=block.index, arguments=piece)),)


# ---------------------------------------------------------------------------------- totals
# The usage of a response with separate counts for each of its answers.


@attrs.define(eq=False, repr=False)
class _Prompt:
    """A prompt: the number of its answers, and its counts in the last report."""

    answers: int = 0
    tokens: int = 0
    cached: int | None = None


@attrs.define(eq=False, repr=False)
class Totals:
    """The counts of all answers so far (``state.own(Totals)``); a report changes them without reading all the others."""

    # For each answer its prompt, and its generated tokens.
    _reports: dict[int, tuple[Hashable, int]] = attrs.Factory(dict)
    _prompts: dict[Hashable, _Prompt] = attrs.Factory(dict)
    _prompt_tokens: int = 0
    _cached_tokens: int | None = None
    _completion_tokens: int = 0

    def add(self, choice: int, prompt: Hashable, counts: UsageInfo, state: MappingState) -> UsageInfo:
        """Return *counts*, the latest of answer *choice*, plus those of the other answers, or *counts* without any.

        Generated tokens are added. A prompt with several answers was read once. Counts missing from a report keep their
        previous value.

        Args:
            choice: the answer.
            prompt: identifies its prompt among those of other answers, or ``None`` if this report does not.
            counts: its counts so far. *state* has noted the absent ones.
            state: the state of the response.
        """
        reported_tokens, reported_completion = (
            None if state.provenance.get(f"usage.{name}") is Provenance.ABSENT else getattr(counts, name)
            for name in ("prompt_tokens", "completion_tokens")
        )
        former_prompt, former_completion = self._reports.get(choice, (None, 0))
        if prompt is None:
            prompt = choice if former_prompt is None else former_prompt
        completion = former_completion if reported_completion is None else reported_completion
        self._reports[choice] = prompt, completion
        self._completion_tokens += completion - former_completion
        prompt_counts = self._prompts.setdefault(prompt, _Prompt())
        prompt_tokens = prompt_counts.tokens if reported_tokens is None else reported_tokens
        cached_tokens = counts.cached_tokens
        if prompt != former_prompt:
            prompt_counts.answers += 1
            former_counts = self._prompts.get(former_prompt)
            if former_counts is not None:
                if reported_tokens is None:
                    prompt_tokens = prompt_tokens or former_counts.tokens
                if cached_tokens is None and prompt_counts.cached is None:
                    cached_tokens = former_counts.cached
                self._leave(former_prompt, former_counts)
        self._prompt_tokens += prompt_tokens - prompt_counts.tokens
        prompt_counts.tokens = prompt_tokens
        # Cached tokens of an uncounted prompt would be added only to those of the others.
        if cached_tokens is not None and prompt_tokens:
            self._cached_tokens = (self._cached_tokens or 0) + cached_tokens - (prompt_counts.cached or 0)
            prompt_counts.cached = cached_tokens
        if len(self._reports) == 1:
            return counts
        state.note("usage.prompt_tokens", Provenance.DERIVED)
        state.note("usage.completion_tokens", Provenance.DERIVED)
        return UsageInfo(self._prompt_tokens, self._completion_tokens, self._cached_tokens)

    def _leave(self, prompt: Hashable, prompt_counts: _Prompt) -> None:
        prompt_counts.answers -= 1
        if not prompt_counts.answers:
            del self._prompts[prompt]
            self._prompt_tokens -= prompt_counts.tokens
            if prompt_counts.cached is not None:
                self._cached_tokens = (self._cached_tokens or 0) - prompt_counts.cached
