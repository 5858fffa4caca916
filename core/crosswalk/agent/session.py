"""A conversation that can be saved, resumed, edited and trimmed, and its JSON."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.agent.results import calls_of, cut_reason, not_run, open_calls
from crosswalk.codec import to_jsonable
from crosswalk.codec.canonical import shared_converter, transform_error
from crosswalk.codec.layout import cannot
from crosswalk.config import COUNT
from crosswalk.errors import ErrorKind, ProviderError, ResponseValidationError
from crosswalk.request import ChatRequest, Messages, Turn, turns_of
from crosswalk.service.turns import message_of
from crosswalk.text import json_type_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.message import ChatMessage, Role, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import as_text, checks_keywords
from crosswalk.words import suggests_names

# -------------------------------------------------------------------------------- trimming
# Trimming of conversations that are too long. No call loses its result, and the user speaks first.


Group: TypeAlias = tuple[Turn, ...]
"""Turns that stay together: a message, or an answer with the results of its calls."""

Trimming: TypeAlias = Callable[[Sequence[Group]], Iterable[Group]]
"""A policy. It takes a conversation without its leading system messages and returns the groups to keep, or replacements
such as a summary.
"""


def keep_turns(number: int) -> Trimming:
    """Keep the last *number* user turns, and the turns that follow each.

    Raises:
        ConfigurationError: *number* is not a whole number of at least 1.
    """
    COUNT.check("number", number)

    def trim(groups: Sequence[Group]) -> Sequence[Group]:
        starts = [start for start, group in enumerate(groups) if _role(group) is Role.USER]
        return groups[starts[-number] :] if len(starts) > number else groups

    return trim


def keep_tokens(number: int) -> Trimming:
    """Keep the turns that fit into *number* tokens, by the counts that providers report with their answers.

    The count of an answer covers the conversation up to it, so the cost of a turn is the difference from the answer before.
    Messages after the last answer are not counted, and system messages count with the first turn, so leave room for both.
    The last turn is always kept. If no provider reports counts, four characters count as a token.

    Raises:
        ConfigurationError: *number* is not a whole number of at least 1.
    """
    COUNT.check("number", number)

    def trim(groups: Sequence[Group]) -> Sequence[Group]:
        usages = [_usage(group) for group in groups]
        reported_usages = [usage for usage in usages if usage is not None]
        if not reported_usages:
            return _last_fitting(groups, [estimated_tokens(group) for group in groups], number)
        if reported_usages[-1].total_tokens <= number:
            return groups
        costs, earlier_total = [], 0
        for usage in usages:
            cost = 0
            if usage is not None:
                total = usage.total_tokens
                # A conversation that was longer before has been trimmed since, so only the answer's own tokens are certain.
                is_longer = earlier_total <= total and (
                    earlier_total or total <= reported_usages[-1].total_tokens
                )
                cost, earlier_total = total - earlier_total if is_longer else usage.completion_tokens, total
            costs.append(cost)
        return _last_fitting(groups, costs, number)

    return trim


def _last_fitting(groups: Sequence[Group], costs: Sequence[int], room: int) -> Sequence[Group]:
    """Return the last of *groups* whose *costs* fit into *room*, but at least one if there are any."""
    start = len(groups)
    while start and (room := room - costs[start - 1]) >= 0:
        start -= 1
    return groups[min(start, max(len(groups) - 1, 0)) :]


def estimated_tokens(turns: Iterable[Turn]) -> int:
    """Estimate the tokens of texts and calls, at four characters a token."""
    character_count = 0
    for message in map(message_of, turns):
        calls = message.tool_calls or ()
        character_count += len(message.text) + sum(len(call.name) + len(call.arguments) for call in calls)
    return -(-character_count // 4)


def groups_of(turns: Iterable[Turn]) -> list[Group]:
    """Group *turns*. The result of a call belongs to the group before it."""
    groups: list[Group] = []
    for turn in turns:
        if groups and message_of(turn).role is Role.TOOL:
            groups[-1] = (*groups[-1], turn)
        else:
            groups.append((turn,))
    return groups


def trim_turns(turns: Sequence[Turn], policy: Trimming) -> tuple[Turn, ...]:
    """Return the turns that *policy* keeps.

    Leading system messages stay. If an answer would come first, which servers refuse, the user message before it stays too.

    Raises:
        ResponseValidationError: *policy* returns something other than groups of turns.
    """
    system_turns = tuple(takewhile(lambda turn: message_of(turn).role is Role.SYSTEM, turns))
    groups = groups_of(turns[len(system_turns) :])
    kept_groups = [group for group in _as_groups(policy(tuple(groups))) if group]
    if kept_groups and _role(kept_groups[0]) is Role.ASSISTANT:
        start = next((index for index, group in enumerate(groups) if group is kept_groups[0]), 0)
        kept_groups[:0] = [group for group in groups[:start] if _role(group) is Role.USER][-1:]
    return (*system_turns, *(turn for group in kept_groups for turn in group))


def trim_refused_request(
    request: ChatRequest, answer: ChatResponse, policy: Trimming | None
) -> ChatRequest | None:
    """Return *request* trimmed by *policy*, if *answer* is an error that says the conversation is too long for the model.

    Returns ``None`` otherwise, and if the policy would remove nothing or everything.
    """
    info = answer.error_info
    if policy is None or info is None or info.kind is not ErrorKind.CONTEXT_OVERFLOW:
        return None
    return trimmed_request(request, policy)


def trimmed_request(request: ChatRequest, policy: Trimming) -> ChatRequest | None:
    """Return *request* trimmed by *policy*, or ``None`` if that would remove nothing or everything.

    Cache marks on removed messages are removed too.
    """
    turns = trim_turns(request.messages, policy)
    count = len(turns)
    if not 0 < count < len(request.messages):
        return None
    marks = [m for m in request.cache_marks if isinstance(m.after, str) or -count <= m.after < count]
    return attrs.evolve(request, messages=turns, cache_marks=marks)


def _as_groups(result: object) -> list[Group]:
    groups: list[Any] = list(result) if isinstance(result, Iterable) else [result]
    if not all(isinstance(group, list | tuple) and all(map(_is_turn, group)) for group in groups):
        raise ResponseValidationError("a trimming policy must return groups of turns, like those it receives")
    return groups


def _is_turn(one: object) -> bool:
    return isinstance(one, ChatMessage | ChatResponse)


def _role(group: Group) -> Role:
    return message_of(group[0]).role


def _usage(group: Group) -> UsageInfo | None:
    """Return the usage that came with the answer in *group*, or ``None``."""
    answer = group[0]
    return answer.usage if isinstance(answer, ChatResponse) and answer.usage.total_tokens else None


# ---------------------------------------------------------------------------- session json
# The JSON of a session: written, read, and saved to a file.


SESSION_FORMAT_VERSION: Final = "1.0"
"""The version of a session's JSON, as ``major.minor``. A reader of a major version reads all its minor versions."""

_READABLE_VERSION: Final = re.compile(r"1\.(?:0|[1-9][0-9]{0,8})")


@attrs.frozen
class TurnDocument:
    """A turn in JSON. Exactly one of the two fields is set."""

    message: ChatMessage | None = None
    response: ChatResponse | None = None

    def __attrs_post_init__(self) -> None:
        if (self.message is None) == (self.response is None):
            raise ResponseValidationError("a turn is either a message or a response")

    @property
    def turn(self) -> Turn:
        """The message or the response."""
        turn = self.message if self.response is None else self.response
        assert turn is not None
        return turn


@attrs.frozen
class SessionDocument:
    """A session in JSON."""

    id: str = attrs.field(validator=attrs.validators.min_len(1))
    created: datetime
    turns: list[TurnDocument]
    refused_lengths: dict[str, int] = attrs.field(factory=dict)


def write_session(session: Any, turns: Iterable[Turn], *, indent: bool = False) -> bytes:
    """Return *session*, a ``ChatSession``, with *turns* as JSON, indented by two spaces a level if *indent*.

    Raises:
        CanonicalJSONError: a turn holds a value that JSON cannot represent, or is nested too deeply.
    """
    document = {
        "format_version": SESSION_FORMAT_VERSION,
        "id": session.id,
        "created": session.created,
        "turns": list(map(_turn_fields, turns)),
        **({"refused_lengths": session.refused_lengths} if session.refused_lengths else {}),
    }
    session_id: object = session.id  # callers may set it to anything
    if not isinstance(session_id, str):
        raise cannot("write", type(session), ["the id is not a string @ $"])
    return _dumped(document, type(session), orjson.OPT_UTC_Z | (orjson.OPT_INDENT_2 if indent else 0))


def write_turn(turn: Turn) -> bytes:
    """Return one turn of a session as JSON.

    Raises:
        CanonicalJSONError: it holds a value that JSON cannot represent, or is nested too deeply.
    """
    return _dumped(_turn_fields(turn), type(turn), orjson.OPT_UTC_Z)


def _turn_fields(turn: Turn) -> dict[str, Any]:
    return {"response" if isinstance(turn, ChatResponse) else "message": to_jsonable(turn)}


def _dumped(document: object, cls: type, option: int) -> bytes:
    try:
        return dump_json(document, option=option)
    except TypeError as error:
        # A turn at the depth limit is too deep inside a session. An id may contain an unpaired surrogate.
        raise cannot("write", cls, [f"{error} @ $"]) from None


def read_document(data: bytes | str, cls: type, turns: Iterable[bytes] | None = None) -> SessionDocument:
    """Read the JSON of a session. Unknown keys are ignored.

    Args:
        data: the JSON.
        cls: the class that errors name.
        turns: the JSON of each turn, if they are not in *data*.

    Raises:
        CanonicalJSONError: *data* is not JSON, has another format version, or is not a session.
    """
    try:
        document = load_json(data)
        if turns is not None and isinstance(document, dict):
            document["turns"] = list(map(load_json, turns))
    except orjson.JSONDecodeError as error:
        raise cannot("read", cls, [f"not JSON ({error.msg} at character {error.pos}) @ $"]) from None
    version = document.get("format_version", "1.0") if isinstance(document, dict) else "1.0"
    if not isinstance(version, str):
        raise cannot("read", cls, [f"expected string, got {json_type_name(version)} @ $.format_version"])
    if not _READABLE_VERSION.fullmatch(version):
        problem = f"unknown format version {version[:40]!r} (readable: 1.x)"
        raise cannot("read", cls, [f"{problem} @ $.format_version"])
    try:
        return shared_converter().structure(document, SessionDocument)
    except Exception as error:
        problems = transform_error(error)
    # Raised outside the handler, so that the error has no context, which would quote content.
    raise cannot("read", cls, problems)


def write_file(file: Path, data: bytes) -> None:
    """Write *data* to *file*, which afterwards is complete or, if writing fails, unchanged."""
    file = Path(os.path.realpath(file))
    handle, temporary_path = tempfile.mkstemp(prefix=f".{file.name[:100]}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        if file.exists():
            shutil.copymode(file, temporary_path)
        os.replace(temporary_path, file)
    except BaseException:
        os.unlink(temporary_path)
        raise


# --------------------------------------------------------------------------------- session
# A conversation that can be saved, resumed, edited and trimmed.


@suggests_names
class ChatSession:
    """A conversation, oldest turn first, that can be saved and resumed. Pass it wherever turns are accepted.

    Answers are stored unchanged. ``turns`` sends them back to the provider with everything that only a whole response
    holds, such as the signature of its reasoning. ``messages`` is the plain conversation.

    Servers refuse a conversation in which a call has no result. So the calls of an answer that was cancelled or cut get the
    result "not run" at once, and open calls get it when the next message is added. A result that arrives later replaces it.

    Args:
        turns: the first turns: messages, also in OpenAI's chat form, and answers.
        id: the id of the session, or ``None`` for a random one.
        created: when the conversation began, or ``None`` for now.
        refused_lengths: how many messages were too many, by the name of the model in requests (``""`` for no name). An agent
            with ``trim=`` fills it in, so that such a conversation is not sent whole again.

    Raises:
        ResponseValidationError: an item of *turns* is not a turn, *id* is not a string, or *created* has no time zone.
        ProviderError: an item of *turns* is an error response.
    """

    @checks_keywords()
    def __init__(
        self,
        turns: Messages = (),
        *,
        id: str | None = None,
        created: datetime | None = None,
        refused_lengths: Mapping[str, int] | None = None,
    ) -> None:
        creation_time: object = datetime.now(UTC) if created is None else created
        if not isinstance(creation_time, datetime) or creation_time.utcoffset() is None:
            raise ResponseValidationError("created must be a datetime with a time zone")
        self.id = as_text(id or str(uuid.uuid4()), "the id of a session")
        self.created = creation_time.astimezone(UTC)
        self._turns: list[Turn] = []
        self.refused_lengths: dict[str, int] = dict(refused_lengths or {})
        self.extend(turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation for a request."""
        return tuple(self._turns)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The conversation as messages only."""
        return tuple(map(message_of, self._turns))

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last answer that have no result yet, in order."""
        return open_calls(self._turns)

    @property
    def usage(self) -> UsageInfo:
        """The tokens of all answers together."""
        usages = (turn.usage for turn in self._turns if isinstance(turn, ChatResponse))
        return sum(usages, UsageInfo.EMPTY)

    def add_message(self, message: ChatMessage) -> None:
        """Add a message. The results of calls are placed in the order of the calls.

        Raises:
            ResponseValidationError: *message* is not a message.
        """
        if not isinstance(message, ChatMessage):
            raise ResponseValidationError(f"a session takes messages, not {type(message).__name__}")
        if message.role is Role.TOOL:
            self._add_result(message)
        else:
            self._add(message)

    def add_response(self, response: ChatResponse) -> None:
        """Add an answer of the model.

        Raises:
            ResponseValidationError: *response* is not a response.
            ProviderError: *response* is an error response, which cannot be part of a conversation.
        """
        if not isinstance(response, ChatResponse):
            raise ResponseValidationError(f"a session takes responses, not {type(response).__name__}")
        self._add(response.raise_for_error())

    def extend(self, turns: Messages) -> None:
        """Add several turns, such as ``AgentResponse.conversation``. See :meth:`add_message` and :meth:`add_response`."""
        for turn in turns_of(turns):
            if isinstance(turn, ChatResponse):
                self.add_response(turn)
            else:
                self.add_message(turn)

    def pop(self) -> Group:
        """Remove the last turn and return it. An answer is removed together with the results of its calls.

        Raises:
            IndexError: the session is empty.
        """
        if not self._turns:
            raise IndexError("the session is empty")
        removed_group = groups_of(self._turns)[-1]
        del self._turns[-len(removed_group) :]
        return removed_group

    def replace(self, index: int, *turns: Turn) -> None:
        """Replace a turn by *turns*. An answer is replaced together with the results of its calls.

        Args:
            index: the index of the turn in :attr:`turns`.
            turns: the replacement. A result can only be replaced by another result of the same call.

        Raises:
            IndexError: there is no such turn.
            ResponseValidationError: an item is not a turn, or not a result of the same call.
            ProviderError: an item is an error response.
        """
        old_turn = self.turns[index]
        index %= len(self._turns)
        if (call_id := message_of(old_turn).tool_call_id) is not None:
            if [message_of(turn).tool_call_id for turn in turns] != [call_id]:
                raise ResponseValidationError(
                    "a result can only be replaced by another result of the same call"
                )
            self._replace_all((*self._turns[:index], *turns, *self._turns[index + 1 :]))
        else:
            group = groups_of(self._turns[index:])[0]
            self._replace_all((*self._turns[:index], *turns, *self._turns[index + len(group) :]))

    def fork(self, end: int | None = None, *, id: str | None = None) -> ChatSession:
        """Return a new session that begins with the turns of this one.

        Args:
            end: take only the turns before this index. An answer with excluded results is excluded too. ``None``
                for all.
            id: the id of the new session, or ``None`` for a random one.
        """
        turns = self._turns[:end]
        while (
            turns and len(turns) < len(self._turns) and message_of(self._turns[len(turns)]).role is Role.TOOL
        ):
            turns = turns[: -len(groups_of(turns)[-1])]
        return ChatSession(turns, id=id)

    def clear(self) -> None:
        """Remove all turns except leading system messages."""
        self.trim(lambda _: ())

    def trim(self, policy: Trimming) -> tuple[Turn, ...]:
        """Trim the session and return the removed turns.

        Leading system messages stay, and no answer loses the results of its calls. If an answer would come first, the user's
        message before it stays too.

        Args:
            policy: selects the turns to keep: ``keep_turns(10)``, ``keep_tokens(8000)``, or a custom function.

        Raises:
            ResponseValidationError: *policy* returns something other than groups of turns.
        """
        earlier_turns = self.turns
        self._replace_all(trim_turns(earlier_turns, policy))
        remaining_ids = {id(turn) for turn in self._turns}
        return tuple(turn for turn in earlier_turns if id(turn) not in remaining_ids)

    def _replace_all(self, turns: Iterable[Turn]) -> None:
        self._turns = ChatSession(turns)._turns
        self.refused_lengths.clear()  # they belong to the old conversation

    def _add(self, turn: Turn) -> None:
        for call in self.open_calls:
            self._add_result(not_run(call, "the conversation went on").message)
        self._turns.append(turn)
        cause = cut_reason(turn)
        if cause is not None:
            for call in calls_of(turn):
                self._add_result(not_run(call, f"the answer ended with {cause}").message)

    def _add_result(self, result: ChatMessage) -> None:
        """Insert *result* after the last answer with its call, in the order of the calls. It replaces an earlier result."""
        turns, id = self._turns, result.tool_call_id
        position = len(turns) - 1
        while position >= 0 and all(call.id != id for call in calls_of(turns[position])):
            position -= 1
        if position < 0:  # the result of an unknown call stays at the end
            turns.append(result)
            return
        order = {call.id: number for number, call in enumerate(calls_of(turns[position]))}
        start = end = position + 1
        while end < len(turns) and message_of(turns[end]).role is Role.TOOL:
            end += 1
        other_results = [one for one in turns[start:end] if message_of(one).tool_call_id != id]
        turns[start:end] = sorted(
            [*other_results, result], key=lambda one: order.get(str(message_of(one).tool_call_id), len(order))
        )

    def __len__(self) -> int:
        return len(self._turns)

    def __bool__(self) -> bool:
        return True  # an empty session is still a session

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __repr__(self) -> str:
        return f"ChatSession(id={self.id[:60]!r}, turns={len(self)})"

    def to_json(self, *, indent: bool = False) -> bytes:
        """Return the session as JSON, each turn in canonical form. Raw events are not included.

        Args:
            indent: indent by two spaces a level.

        Raises:
            CanonicalJSONError: a turn holds a value that JSON cannot represent, or is nested too deeply.
        """
        return write_session(self, self._turns, indent=indent)

    @classmethod
    def from_json(cls, data: bytes | str) -> ChatSession:
        """Read a session that :meth:`to_json` wrote, in this version or an older one. Unknown keys are ignored.

        Raises:
            CanonicalJSONError: *data* is not JSON, has another format version, or is not a session. ``problems`` lists
                what is wrong and where, such as ``expected string, got number @ $.turns[3].message.content``.
        """
        return cls._from_parts(data)

    @classmethod
    def _from_parts(cls, data: bytes | str, turns: Iterable[bytes] | None = None) -> ChatSession:
        """Read a session, whose *turns* a store may keep apart from the rest."""
        document = read_document(data, cls, turns)
        try:
            return cls(
                [turn.turn for turn in document.turns],
                id=document.id,
                created=document.created,
                refused_lengths=document.refused_lengths,
            )
        except ProviderError:
            raise cannot("read", cls, ["an error response cannot be a turn @ $.turns"]) from None

    def save(self, file: Path | str) -> None:
        """Write the session to *file*, which afterwards is complete or, if writing fails, unchanged.

        A new file is readable by its owner alone. An existing file keeps its permissions, and a link its target.

        Raises:
            CanonicalJSONError: a turn holds a value that JSON cannot represent.
            OSError: the file cannot be written.
        """
        write_file(Path(file), self.to_json(indent=True) + b"\n")

    @classmethod
    def load(cls, file: Path | str) -> ChatSession:
        """Read a session that :meth:`save` wrote.

        Raises:
            CanonicalJSONError: the file does not contain a readable session.
            OSError: the file cannot be read.
        """
        return cls.from_json(Path(file).read_bytes())
