"""The errors of the Responses API's types.

CrosswalkError
└── ResponsesError
    ├── ResponsesParseError (ValueError)     JSON that is not a value of the requested type
    │   └── UnknownTypeError                 an item, event, part … of an unregistered type
    ├── ResponsesValueError (ValueError)     a value made in the program breaks a rule of its type
    │   └── InvalidIdError                   an id with a wrong prefix or wrong characters
    ├── NotAStreamError (ValueError)         an error body, a page of HTML … instead of a stream
    └── SnapshotError                        an event that does not fit the response so far
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from crosswalk.errors import CrosswalkError


class ResponsesError(CrosswalkError):
    """The root of the errors that ``crosswalk.responses`` raises."""


class ResponsesParseError(ResponsesError, ValueError):
    """JSON that is not a value of the requested type: a missing field, a wrong type, an unknown word.

    Attributes:
        path: the location, such as ``$.output[0].status``.
        problem: the problem, without the content.
        problems: every problem of the document, as ``problem @ path``.
    """

    def __init__(self, problem: str, *, path: str = "$", problems: Sequence[str] = ()) -> None:
        super().__init__(f"{problem} @ {path}")
        self.problems = tuple(problems) or (f"{problem} @ {path}",)
        self.problem = problem
        self.path = path


class UnknownTypeError(ResponsesParseError):
    """An object with a ``type`` that is not registered. ``unknown="keep"`` would accept it.

    Attributes:
        family: the expected family: ``item``, ``event``, ``content part``, ``annotation``, ``tool`` ….
        type_name: its ``type``, shortened, or ``None`` if it has none.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str = "$",
        problems: Sequence[str] = (),
        family: str,
        type_name: str | None,
    ) -> None:
        super().__init__(problem, path=path, problems=problems)
        self.family = family
        self.type_name = type_name


class ResponsesValueError(ResponsesError, ValueError):
    """A value made in the program breaks a rule of its type.

    Attributes:
        path: the class and field, such as ``ResponseOutputText.text``.
    """

    def __init__(self, problem: str, *, path: str) -> None:
        super().__init__(f"{problem} @ {path}")
        self.path = path


class InvalidIdError(ResponsesValueError):
    """An id that does not have the form its kind has.

    Attributes:
        kind: the kind of thing it should name, such as ``response``.
    """

    def __init__(self, problem: str, *, kind: str) -> None:
        super().__init__(problem, path=f"{kind}.id")
        self.kind = kind


NotAStreamKind: TypeAlias = Literal["error", "response", "json", "html", "text"]
"""The kinds of content that are not a stream: an error body, a whole response, other JSON, HTML or XML, other text."""


class NotAStreamError(ResponsesError, ValueError):
    """The content is not a stream of server-sent events.

    Attributes:
        kind: the kind of content.
        message: the message of an error body or the beginning of HTML and text, shortened, or ``None`` for other JSON.
    """

    def __init__(self, kind: NotAStreamKind, message: str | None = None) -> None:
        what = {"error": "an error body", "response": "a whole response", "json": "JSON", "html": "HTML"}
        came = f"not a stream of events: {what.get(kind, kind)}"
        super().__init__(came if message is None else f"{came}: {message}")
        self.kind = kind
        self.message = message


class SnapshotError(ResponsesError):
    """A stream event that does not fit the response as the events before it made it, or is cut off.

    Attributes:
        event_type: the event's ``type``, or ``stream`` if it is not known.
        sequence_number: its position in the stream, or ``None`` if the server sent none.
    """

    def __init__(self, problem: str, *, event_type: str, sequence_number: int | None) -> None:
        location = "" if sequence_number is None else f" (sequence_number {sequence_number})"
        super().__init__(f"{event_type}{location}: {problem}")
        self.event_type = event_type
        self.sequence_number = sequence_number
