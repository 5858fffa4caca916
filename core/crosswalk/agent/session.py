"""A conversation that can be saved, resumed, edited and trimmed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from crosswalk.agent.calls import calls_of, cut_reason, open_calls
from crosswalk.agent.results import not_run
from crosswalk.agent.session_json import read_document, write_file, write_session
from crosswalk.agent.trimming import Group, Trimming, groups_of, trim_turns
from crosswalk.codec.layout import cannot
from crosswalk.errors import ProviderError, ResponseValidationError
from crosswalk.keywords import checks_keywords
from crosswalk.request import Messages, Turn, turns_of
from crosswalk.service.turns import message_of
from crosswalk.types.message import ChatMessage, Role, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import as_text


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
        start: object = datetime.now(UTC) if created is None else created
        if not isinstance(start, datetime) or start.utcoffset() is None:
            raise ResponseValidationError("created must be a datetime with a time zone")
        self.id = as_text(id or str(uuid.uuid4()), "the id of a session")
        self.created = start.astimezone(UTC)
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
        answers = (turn.usage for turn in self._turns if isinstance(turn, ChatResponse))
        return sum(answers, UsageInfo.EMPTY)

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
        taken = groups_of(self._turns)[-1]
        del self._turns[-len(taken) :]
        return taken

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
        old = self.turns[index]
        index %= len(self._turns)
        if (call := message_of(old).tool_call_id) is not None:
            if [message_of(turn).tool_call_id for turn in turns] != [call]:
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
        before = self.turns
        self._replace_all(trim_turns(before, policy))
        remaining = {id(turn) for turn in self._turns}
        return tuple(turn for turn in before if id(turn) not in remaining)

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
        begin = end = position + 1
        while end < len(turns) and message_of(turns[end]).role is Role.TOOL:
            end += 1
        others = [one for one in turns[begin:end] if message_of(one).tool_call_id != id]
        turns[begin:end] = sorted(
            [*others, result], key=lambda one: order.get(str(message_of(one).tool_call_id), len(order))
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
