"""The parts of a conversation that the finished body of its request lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from crosswalk.request import ChatRequest, Dropped, Turn
from crosswalk.service.turns import message_of
from crosswalk.service.way_back.state import answer_state
from crosswalk.types.message import Role, TextPart
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import CitationRef, SegmentType

NO_PLACE: Final = "the API has no place for it"
"""The reason of a part that the API cannot express."""
_SPOKEN: Final = (SegmentType.TEXT, SegmentType.REFUSAL, SegmentType.REASONING)


def not_sent(request: ChatRequest, body: Mapping[str, Any], named: Iterable[Dropped]) -> Iterator[Dropped]:
    """Return the parts of *request*, that *body* lacks and that are not yet named.

    A plugin may leave out parts that its API cannot express. So the finished body is searched: each text, each opaque
    value and each field of an answer's state has to be there, and not because another turn has the same.
    """
    described = {dropped.option for dropped in named}
    contents: dict[bool, _Content] = {}
    for number, turn in enumerate(request.messages):
        option = f"messages[{number}]"
        wanted = [] if option in described else [*_wanted(turn)]
        is_answer = isinstance(turn, ChatResponse)
        if wanted and is_answer not in contents:
            contents[is_answer] = _Content(_without_others(body) if is_answer else body)
        for what in dict.fromkeys(what for what, is_in in wanted if not is_in(contents[is_answer])):
            yield Dropped(option, f"{what}: {NO_PLACE}", refuses=False)


def _without_others(body: Any) -> Any:
    """Return *body* without the messages that the model did not write: in every API they name their role."""
    if isinstance(body, Mapping):
        return {key: _without_others(value) for key, value in body.items()}
    if isinstance(body, list):
        return [_without_others(item) for item in body if not (_is_message(item) and item["role"] in _OTHERS)]
    return body


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("role"), str)


_OTHERS: Final = ("system", "developer", "user", "tool")


class _Content:
    """Everything that a body holds."""

    def __init__(self, body: Any) -> None:
        self.texts: set[str] = set()
        self.pairs: set[tuple[str, Any]] = set()
        for key, leaf in leaves(body):
            self.pairs.add((key, leaf))
            if isinstance(leaf, str):
                self.texts.add(leaf)
        self._all: str | None = None

    def has(self, text: str) -> bool:
        """Whether *text* is there, alone or in a longer one."""
        if text in self.texts:
            return True
        if self._all is None:
            self._all = "\n".join(self.texts)
        return text in self._all


def _wanted(turn: Turn) -> Iterator[tuple[str, Callable[[_Content], bool]]]:
    """Return the parts of *turn* that have to be in the body: the name of each, and the test for its presence."""
    message = message_of(turn)
    if message.name and message.role is not Role.TOOL:
        yield "the speaker's name", _has_pair(("name", message.name))
    if not isinstance(turn, ChatResponse):
        if not isinstance(turn.content, str) and turn.content is not None:
            for part in turn.content:
                if isinstance(part, TextPart) and part.text and not part.text.strip():
                    yield "white space", _holds(part.text)
        return
    for segment in turn.segments:
        if segment.type in _SPOKEN and (text := segment.content.strip()):
            yield str(segment.type), _holds(text)
        for note in segment.annotations if segment.type is SegmentType.CITATION else ():
            if isinstance(note, CitationRef) and note.source:
                yield "citations", _holds(note.source)
        for key, what in (("signature", "a signature"), ("encrypted", "encrypted reasoning")):
            if value := segment.metadata.get(key):
                yield what, _holds(str(value))
    for pair in leaves(answer_state(turn)):
        yield f"state ({pair[0]})", _has_pair(pair)


def _holds(text: str) -> Callable[[_Content], bool]:
    return lambda content: content.has(text)


def _has_pair(pair: tuple[str, Any]) -> Callable[[_Content], bool]:
    return lambda content: pair in content.pairs


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Return the strings, numbers and truth values in *value*, each with its key."""
    waiting = [(key, value)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(name, item) for name, item in value.items() if name != "index"]  # a mere position
        elif isinstance(value, list | tuple):
            waiting += [(key, item) for item in value]
        elif value is not None and value != "":
            yield key, value
