"""A conversation that is kept."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from crosswalk.agent.calls import calls_of, cut_reason, open_calls
from crosswalk.agent.results import not_run
from crosswalk.agent.session_json import read_document, write_file, write_session
from crosswalk.agent.trimming import Group, Trimming, groups_of, trim_turns
from crosswalk.codec.problems import cannot
from crosswalk.errors import ProviderError, ResponseValidationError
from crosswalk.service.given import turns_of
from crosswalk.service.request import Messages, Turn
from crosswalk.service.turns import message_of
from crosswalk.types._value import as_text
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.response import ChatResponse
from crosswalk.types.tools import ToolCall
from crosswalk.types.usage import UsageInfo

__all__ = ["ChatSession"]


class ChatSession:
    """A conversation, oldest turn first, that can be saved and resumed; may be given wherever turns are.

    What a model answered is kept as it came: ``turns`` gives it back to the provider with what only a whole
    response holds, such as the signature of its reasoning; ``messages`` is the plain conversation.

    No server takes a conversation in which a call has no result. So the calls of an answer that was cancelled or cut
    are answered at once, as not run, and those that are still open when somebody else speaks; a result that comes
    later takes the place of such an answer.

    Args:
        turns: how it begins: messages, also in OpenAI's chat form, and answers as they came.
        id: its name; ``None`` to make one up.
        created: when it began; ``None`` for now.
        refused_lengths: how many messages were too many for a model, by its name as requests have it, ``""`` where they name
            none; an agent with ``trim=`` fills it in, so that such a conversation is not sent whole again.

    Raises:
        ResponseValidationError: something in *turns* is no turn, *id* no text, or *created* has no time zone.
        ProviderError: something in *turns* is an error response.
    """

    def __init__(
        self,
        turns: Messages = (),
        *,
        id: str | None = None,
        created: datetime | None = None,
        refused_lengths: Mapping[str, int] | None = None,
    ) -> None:
        given: object = datetime.now(UTC) if created is None else created
        if not isinstance(given, datetime) or given.utcoffset() is None:
            raise ResponseValidationError("created must be a datetime with a time zone")
        self.id = as_text(id or str(uuid.uuid4()), "the id of a session")
        self.created = given.astimezone(UTC)
        self._turns: list[Turn] = []
        self.refused_lengths: dict[str, int] = dict(refused_lengths or {})
        self.extend(turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation as a request takes it."""
        return tuple(self._turns)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The conversation as messages alone."""
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
        """Add what the user, a tool or anybody else says; results stand in the order of their calls.

        Raises:
            ResponseValidationError: it is no message.
        """
        if not isinstance(message, ChatMessage):
            raise ResponseValidationError(f"a session takes messages, not {type(message).__name__}")
        if message.role is Role.TOOL:
            self._add_result(message)
        else:
            self._add(message)

    def add_response(self, response: ChatResponse) -> None:
        """Add a model's answer.

        Raises:
            ResponseValidationError: it is no response.
            ProviderError: it is an error response, which is no part of a conversation.
        """
        if not isinstance(response, ChatResponse):
            raise ResponseValidationError(f"a session takes responses, not {type(response).__name__}")
        self._add(response.raise_for_error())

    def extend(self, turns: Messages) -> None:
        """Add several turns, such as ``AgentResponse.conversation``; see :meth:`add_message`, :meth:`add_response`."""
        for turn in turns_of(turns):
            if isinstance(turn, ChatResponse):
                self.add_response(turn)
            else:
                self.add_message(turn)

    # ------------------------------------------------------------------------------------------ edited

    def pop(self) -> Group:
        """Take the last turn away; an answer goes with the results of its calls, and they with it.

        Raises:
            IndexError: the session is empty.
        """
        if not self._turns:
            raise IndexError("the session is empty")
        taken = groups_of(self._turns)[-1]
        del self._turns[-len(taken) :]
        return taken

    def replace(self, index: int, *turns: Turn) -> None:
        """Put *turns* in the place of a turn; an answer is replaced with the results of its calls.

        Args:
            place: the turn's index in :attr:`turns`.
            turns: what to say instead; for a result, another one of the same call.

        Raises:
            IndexError: there is no such turn.
            ResponseValidationError: something is no turn, or not a result where one stood.
            ProviderError: something is an error response.
        """
        old = self.turns[index]
        index %= len(self._turns)
        if (call := message_of(old).tool_call_id) is not None:
            if [message_of(turn).tool_call_id for turn in turns] != [call]:
                raise ResponseValidationError(
                    "in the place of a result there can be one of the same call alone"
                )
            self._replace_all((*self._turns[:index], *turns, *self._turns[index + 1 :]))
        else:
            group = groups_of(self._turns[index:])[0]
            self._replace_all((*self._turns[:index], *turns, *self._turns[index + len(group) :]))

    def fork(self, end: int | None = None, *, id: str | None = None) -> ChatSession:
        """A session of its own that begins with the turns of this one.

        Args:
            end: only with the turns before this index; an answer whose results would be left behind stays behind with
                them. ``None`` for all.
            id: its name; ``None`` to make one up.
        """
        turns = self._turns[:end]
        while len(turns) < len(self._turns) and message_of(self._turns[len(turns)]).role is Role.TOOL:
            turns = turns[: -len(groups_of(turns)[-1])]
        return ChatSession(turns, id=id)

    def clear(self) -> None:
        """Forget what was said; system messages at the beginning stay."""
        self.trim(lambda _: ())

    def trim(self, policy: Trimming) -> tuple[Turn, ...]:
        """Make the session shorter, and give what was taken away.

        System messages at the beginning stay, no answer loses the results of its calls, and where an answer would be the
        first to speak, the user's message before it stays too.

        Args:
            policy: what to keep: ``keep_turns(10)``, ``keep_tokens(8000)``, or a function of one's own.

        Raises:
            ResponseValidationError: *policy* gives what is no turn.
        """
        before = self.turns
        self._replace_all(trim_turns(before, policy))
        remaining = {id(turn) for turn in self._turns}
        return tuple(turn for turn in before if id(turn) not in remaining)

    def _replace_all(self, turns: Iterable[Turn]) -> None:
        self._turns = ChatSession(turns)._turns
        self.refused_lengths.clear()  # of another conversation

    # ------------------------------------------------------------------------------------------ added to

    def _add(self, turn: Turn) -> None:
        for call in self.open_calls:
            self._add_result(not_run(call, "the conversation went on").message)
        self._turns.append(turn)
        cause = cut_reason(turn)
        if cause is not None:
            for call in calls_of(turn):
                self._add_result(not_run(call, f"the answer ended with {cause}").message)

    def _add_result(self, result: ChatMessage) -> None:
        """Put *result* behind the last answer that asked for it, in the order of the calls; an earlier one goes."""
        turns, id = self._turns, result.tool_call_id
        position = len(turns) - 1
        while position >= 0 and all(call.id != id for call in calls_of(turns[position])):
            position -= 1
        if position < 0:  # it answers no call, and stays where it was said
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
        return True  # an empty session is one

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __repr__(self) -> str:
        return f"ChatSession(id={self.id[:60]!r}, turns={len(self)})"

    # -------------------------------------------------------------------------------------- as JSON

    def to_json(self, *, indent: bool = False) -> bytes:
        """The session as JSON, each turn in canonical form; raw events are not kept.

        Args:
            indent: two spaces a level, for people.

        Raises:
            CanonicalJSONError: a turn holds what JSON cannot say, or is nested too deeply.
        """
        return write_session(self, indent=indent)

    @classmethod
    def from_json(cls, data: bytes | str) -> ChatSession:
        """Read what :meth:`to_json` wrote, in this version or an older one; unknown keys are ignored.

        Raises:
            CanonicalJSONError: it is no JSON, of another format version, or no session; ``problems`` says what
                is wrong and where, such as ``expected string, got number @ $.turns[3].message.content``.
        """
        document = read_document(data, cls)
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
        """Write the session to *file*, which is complete or, if that fails, what it was.

        A new file can be read by its owner alone; one that is there keeps its permissions, a link what it points to.

        Raises:
            CanonicalJSONError: a turn holds what JSON cannot say.
            OSError: the file cannot be written.
        """
        write_file(Path(file), self.to_json(indent=True) + b"\n")

    @classmethod
    def load(cls, file: Path | str) -> ChatSession:
        """Read a session that :meth:`save` wrote.

        Raises:
            CanonicalJSONError: it holds no session that can be read.
            OSError: the file cannot be read.
        """
        return cls.from_json(Path(file).read_bytes())
