"""Draft a statement about a capture, from its bytes and its request, before there is a plugin."""

from __future__ import annotations

from typing import Any, Final

from crosswalk.errors import FramingError, MappingError
from crosswalk.testing.perturbation import leaves, show_path
from crosswalk.testing.requested import LIMITS, options_of
from crosswalk.testing.statements import NAMES
from crosswalk.types.values import ErrorKind
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import Limits, SniffingDecoder, is_done

_NOTE: Final = (
    "Correct each fact, from the values under 'found' and the provider's documents; null means that there is none, "
    "but 'finish' and 'complete' need a value. Then remove 'draft' and 'found'."
)
_LONGEST: Final = 2_000
"""The number of characters of a value that are shown."""


def draft_statement(
    body: bytes, *, request: bytes | None = None, status: int = 200, complete: bool = True
) -> dict[str, Any]:
    """Draft the statement about an answer.

    Only facts that need no mapping are filled in: an HTTP error, a body that was cut, the requested model if the answer
    names it, and ``length`` if the answer has a count that equals the requested limit. All other values of the payload
    are listed under ``found``, by their paths, for the author to choose from.

    Args:
        body: the bytes of the answer.
        request: the body of the request, or ``None`` if it is unknown.
        status: the HTTP status.
        complete: whether the body ended as HTTP requires.
    """
    events = _events(body)
    facts: dict[str, Any] = {name: None for name in NAMES if name not in ("retryable", "raises")}
    values = [leaf.value for leaf in leaves(events)]
    options = dict(options_of(request))
    if options.get("model") in values:
        facts["model"] = options["model"]
    if any(options[name] in values for name in LIMITS & options.keys()):
        facts |= {"finish": "length", "complete": False}
    if status >= 400:
        kind = _kind_of(status)
        facts |= {
            "finish": "error",
            "complete": False,
            "error": kind,
            "retryable": status == 429 or status >= 500,
        }
    elif not complete:
        facts |= {"finish": "error", "complete": False, "raises": "IncompleteStreamError"}
    return {"draft": _NOTE, **facts, "found": _found(events)}


def _kind_of(status: int) -> str:
    if status >= 500:
        return ErrorKind.SERVER
    kinds = {401: ErrorKind.AUTHENTICATION, 403: ErrorKind.PERMISSION, 429: ErrorKind.RATE_LIMIT}
    return kinds.get(status, ErrorKind.INVALID_REQUEST)


def _events(body: bytes) -> list[Any]:
    """Return the decoded events of *body*. There are none if only one provider has its framing."""
    decoder = SniffingDecoder(Limits())
    try:
        frames = [*decoder.decode(body), *decoder.flush()]
        return [_event(data, name) for data, name in frames if data and not is_done(data)]
    except MappingError:
        return []


def _event(data: bytes, name: str | None) -> Any:
    """Return the event of a frame. One with a name may carry text, which is shown in the format of ``text_events``."""
    try:
        return load_event(data, Limits(), place="draft", halves="mend")
    except FramingError:
        if name is None:
            raise
        return {"data": data.decode(errors="replace")}


def _found(events: list[Any]) -> dict[str, Any]:
    """Return the values of *events* by their paths: consecutive texts joined, for other values the last one."""
    results: dict[str, Any] = {}
    for leaf in leaves(events):
        path, value = show_path(leaf.path, items=False), leaf.value
        before = results.get(path)
        is_piece = isinstance(value, str) and isinstance(before, str) and value != before
        results[path] = f"{before}{value}" if is_piece else value
    return {
        path: f"{value[:_LONGEST]}…" if isinstance(value, str) and len(value) > _LONGEST else value
        for path, value in results.items()
    }
