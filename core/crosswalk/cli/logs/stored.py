"""Stored answers, as ``crosswalk normalize --output`` writes them and ``crosswalk diff`` reads them.

The stored form of an answer is its canonical JSON. If mapping failed it is an object with ``error``, the name of the
error, ``message``, and ``partial``, the canonical JSON of the partial answer. A snapshot of the conformance kit has the
same form, or holds the canonical JSON as ``response``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import orjson

from crosswalk.cli.logs.reading import response_of
from crosswalk.cli.logs.sources import Answer, Source
from crosswalk.codec import from_json, to_json
from crosswalk.errors import CanonicalJSONError, CrosswalkError, MappingError
from crosswalk.text import json_type_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.response import ChatResponse

__all__ = ["Failure", "Outcome", "outcome_of", "read_stored", "stored_json", "stored_path"]


@attrs.frozen
class Failure:
    """The failure of mapping an answer.

    Attributes:
        error: the name of the error.
        message: its message.
        partial: the partial answer, or ``None`` if nothing was received.
    """

    error: str
    message: str
    partial: ChatResponse | None = None


Outcome: TypeAlias = ChatResponse | Failure


def outcome_of(answer: Answer, arguments: argparse.Namespace, *, keep_raw: bool = False) -> Outcome:
    """The result of mapping *answer*; arguments as for :func:`crosswalk.cli.logs.reading.deltas_of`.

    A response that cannot be written as JSON is a failure, too.
    """
    try:
        response = response_of(answer, arguments, keep_raw=keep_raw)
        to_json(response)
        return response
    except CrosswalkError as error:
        partial = error.partial if isinstance(error, MappingError) else None
        return Failure(type(error).__name__, str(error), _if_writable(partial))


def _if_writable(partial: ChatResponse | None) -> ChatResponse | None:
    try:
        if partial is not None:
            to_json(partial)
        return partial
    except CanonicalJSONError:
        return None


def stored_path(source: Source) -> Path:
    """The path of the stored form of *source* inside the output folder; for a capture, ``CASE.json``."""
    if source.path is None:
        return Path(source.name)
    path = Path(source.path.name) if source.root is None else source.path.relative_to(source.root)
    if source.records:
        return path
    return path.with_name(f"{path.name.removesuffix(path.suffix).removesuffix('.response')}.json")


def stored_json(outcome: Outcome, *, indent: bool, include_raw: bool) -> bytes:
    """The stored form of *outcome*, which :func:`outcome_of` returned."""
    if isinstance(outcome, ChatResponse):
        return to_json(outcome, indent=indent, include_raw=include_raw)
    payload: dict[str, Any] = {"error": outcome.error, "message": outcome.message}
    if outcome.partial is not None:
        payload["partial"] = load_json(to_json(outcome.partial, include_raw=include_raw))
    return dump_json(payload, option=orjson.OPT_INDENT_2 if indent else 0)


def read_stored(stored: Any) -> Outcome:
    """The outcome with the stored form *stored*, which is decoded JSON.

    Raises:
        CanonicalJSONError: it is not a stored form.
    """
    if isinstance(stored, dict) and "message" not in stored and "response" in stored:
        stored = stored["response"]
    if not isinstance(stored, dict):
        raise CanonicalJSONError(f"expected an object, got {json_type_name(stored)}")
    error, message = stored.get("error"), stored.get("message")
    if not isinstance(error, str) or not isinstance(message, str):
        return _response(stored)
    partial = stored.get("partial")
    return Failure(error, message, None if partial is None else _response(partial))


def _response(stored: Any) -> ChatResponse:
    try:
        return from_json(dump_json(stored), ChatResponse)
    except TypeError:
        raise CanonicalJSONError("nested too deeply") from None
