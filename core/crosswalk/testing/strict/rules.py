"""The parts of a strict server: rules with their sources, the values that a provider has issued, its form of an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import orjson

from crosswalk.errors import MappingError
from crosswalk.testing.captures import Capture
from crosswalk.testing.exchange import Answer, ReceivedRequest
from crosswalk.wire.framing import CustomFraming, Limits, SniffingDecoder, is_done


@attrs.frozen
class StrictRefusal:
    """Why a server refuses a request, in the fields that error formats have for it.

    Attributes:
        message: what the API says.
        param: the path of the offending field, or ``None`` if the API names no field.
        code: the API's word or number for the error, or ``None``.
        kind: the API's class of error, or ``None`` for its usual one.
        status: the HTTP status.
    """

    message: str
    param: str | None = None
    code: str | None = None
    kind: str | None = None
    status: int = 400


class Issued:
    """The values that a provider has issued: all that are in its server's answers.

    A real provider verifies a signature with a key. This one looks for it among what it has issued itself.

    Args:
        framing: the provider's own framing, or ``None`` for SSE, NDJSON and JSON alone.

    Attributes:
        events: the decoded events of all answers.
    """

    def __init__(self, framing: CustomFraming | None = None) -> None:
        self.events: list[Any] = []
        self._framing = framing
        self._texts: set[str] = set()

    def add(self, answer: Answer | Capture) -> None:
        """Add the events of *answer*. Bytes that are not JSON issue nothing."""
        body = answer.body if isinstance(answer, Capture) else b"".join(answer.chunks)
        decoder = SniffingDecoder(Limits(), self._framing)
        try:
            frames = [*decoder.decode(body), *decoder.flush()]
        except MappingError:
            return
        for data, _ in frames:
            if not data or is_done(data):
                continue
            try:
                event = orjson.loads(data)
            except orjson.JSONDecodeError:
                continue
            self.events.append(event)
            self._texts.update(_texts(event))

    def has(self, value: Any) -> bool:
        """Whether *value* is a text that some answer holds as a whole value."""
        return isinstance(value, str) and value in self._texts


@attrs.frozen
class StrictRequest:
    """A request, as rules see it.

    Attributes:
        path: its path, without the query.
        body: its JSON object.
        issued: what the provider has issued before.
    """

    path: str
    body: dict[str, Any]
    issued: Issued = attrs.field(factory=Issued, repr=False)

    def items(self, key: str) -> list[dict[str, Any]]:
        """The objects in the array at *key* of the body."""
        return objects(self.body.get(key))


@attrs.frozen
class ServerRule:
    """A rule that a provider enforces.

    Attributes:
        name: what the rule demands, in a few words.
        source: the public page or report that states it.
        check: gives a :class:`StrictRefusal` for each violation.
    """

    name: str
    source: str
    check: Callable[[StrictRequest], Iterator[StrictRefusal]] = attrs.field(repr=False)


@attrs.frozen
class StrictRules:
    """The rules of a provider's API, for :class:`~crosswalk.testing.ReplayServer`.

    Attributes:
        provider: the provider's name.
        endpoint: how the path of the requests ends that the rules are for.
        rules: in the order in which they are checked.
        error: writes a refusal in the provider's error format.
        framing: the provider's own framing of answers, or ``None`` for SSE, NDJSON and JSON alone.
    """

    provider: str
    endpoint: str
    rules: tuple[ServerRule, ...] = attrs.field(repr=False)
    error: Callable[[StrictRefusal], Answer] = attrs.field(repr=False)
    framing: CustomFraming | None = attrs.field(default=None, repr=False)

    def refused(self, request: ReceivedRequest, issued: Issued) -> Answer | None:
        """The error for *request*, or ``None`` if no rule refuses it. Its case is ``refused: NAME OF THE RULE``."""
        if request.method != "POST" or not request.path.endswith(self.endpoint):
            return None
        try:
            body = orjson.loads(request.body)
        except orjson.JSONDecodeError:
            body = None
        if not isinstance(body, dict):
            return attrs.evolve(self.error(_NOT_JSON), case="refused: the body is a JSON object")
        for rule, refusal in self.violations(StrictRequest(request.path, body, issued)):
            return attrs.evolve(self.error(refusal), case=f"refused: {rule.name}")
        return None

    def violations(self, request: StrictRequest) -> Iterator[tuple[ServerRule, StrictRefusal]]:
        """Each rule that *request* breaks, with what the API says of it."""
        for rule in self.rules:
            for refusal in rule.check(request):
                yield rule, refusal


_NOT_JSON: Final = StrictRefusal("We could not parse the JSON body of your request.")


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in the array *value*. Anything else has none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_at(item: dict[str, Any], key: str) -> str:
    """The text at *key* of *item*, or ``""`` if there is no text."""
    value = item.get(key)
    return value if isinstance(value, str) else ""


def values_of(event: Any, key: str) -> Iterator[Any]:
    """Each value that *event* holds under *key*, at any depth."""
    if isinstance(event, dict):
        for name, value in event.items():
            if name == key:
                yield value
            yield from values_of(value, key)
    elif isinstance(event, list):
        for item in event:
            yield from values_of(item, key)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
