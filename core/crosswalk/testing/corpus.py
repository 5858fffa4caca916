"""The corpus: captures that may be published, the statements about them, and their canonical JSON.

It tests a plugin, and any other program that writes canonical JSON. All of its captures were recorded by this project
from servers that it ran itself, or written after a provider's public documents. The README in their folder says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import attrs
import orjson

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.testing.captures import Capture, load_captures
from crosswalk.testing.changes import shown
from crosswalk.testing.problems import Problem
from crosswalk.testing.statements import stated_differences
from crosswalk.types.metadata import Provenance

__all__ = ["Corpus", "compare_answer"]

_CHECKOUT = Path(__file__).parents[3]
_INSTALLED = Path(__file__).parent / "corpus"


@attrs.frozen
class Corpus:
    """Captures and their canonical JSON, in a folder for each provider.

    Attributes:
        captures: the folder of captures, statements and exceptions.
        canonical: the folder of canonical JSON: ``PROVIDER/CASE.json``, an object with ``response``, or with ``error``,
            the name of the error that must be raised, and ``partial``.
    """

    captures: Path
    canonical: Path

    @classmethod
    def installed(cls) -> Self:
        """Return the corpus that comes with Crosswalk.

        Raises:
            ConfigurationError: this installation has no corpus.
        """
        for captures, canonical in (
            (_INSTALLED / "captures", _INSTALLED / "canonical"),
            (_CHECKOUT / "tests/captures", _CHECKOUT / "snapshots"),
        ):
            if captures.is_dir() and canonical.is_dir():
                return cls(captures, canonical)
        raise ConfigurationError("this installation has no corpus")

    def providers(self) -> list[str]:
        """The providers with captures."""
        return sorted(folder.name for folder in self.canonical.iterdir() if folder.is_dir())

    def load(self, provider: str) -> list[tuple[Capture, Any]]:
        """Load the captures of *provider*, each with its canonical JSON.

        Raises:
            ConfigurationError: there are none.
        """
        if provider not in self.providers():
            names = ", ".join(self.providers())
            raise ConfigurationError(
                f"the corpus has no captures of {provider[:60]!r}; it has those of {names}"
            )
        return [
            (capture, orjson.loads((self.canonical / provider / f"{capture.case}.json").read_bytes()))
            for capture in load_captures(self.captures / provider)
        ]


def compare_answer(capture: Capture, canonical: Any, answer: Any) -> list[Problem]:
    """Compare *answer*, a mapper's result for *capture*, with its statement and its canonical JSON.

    Ids and times that a mapper makes up are not compared, and neither are the words of an error.

    Args:
        capture: the capture.
        canonical: its canonical JSON, from :meth:`Corpus.load`.
        answer: decoded JSON of the same shape, or the response alone.
    """
    if (
        isinstance(answer, dict)
        and "message" in answer
        and "response" not in answer
        and "error" not in answer
    ):
        answer = {"response": answer}
    try:
        found = list(_differences(capture, canonical, answer))
    except CrosswalkError as error:
        found = [("canonical JSON", "", f"cannot be read as a response: {error}")]
    return [
        Problem("P4", f"{capture.case}, {place or check}", message, check, place, capture.case)
        for check, place, message in found
    ]


def _differences(capture: Capture, canonical: Any, answer: Any) -> Iterator[tuple[str, str, str]]:
    from crosswalk.codec import from_json
    from crosswalk.testing.plugin import changes_between
    from crosswalk.types.response import ChatResponse

    if not isinstance(answer, dict) or not answer.keys() & {"response", "error"}:
        yield "canonical JSON", "", "is not an object with a response or an error"
        return
    plain = answer.get("response", answer.get("partial"))
    response = None if plain is None else from_json(orjson.dumps(plain), ChatResponse)
    for fact, message in stated_differences(capture.says or {}, response, answer.get("error")):
        yield "as stated", fact, message
    before, after = ({key: one.get(key) for key in _COMPARED if key in one} for one in (canonical, answer))
    made_up = _made_up(canonical.get("response", canonical.get("partial")) or {})
    for one in changes_between(before | {"message": ""}, after | {"message": ""}):
        if not (isinstance(one.before, str) and one.before in made_up):
            yield "canonical JSON", one.field, " -> ".join(shown(one))


_COMPARED = ("response", "error", "partial")


def _made_up(response: dict[str, Any]) -> set[str]:
    """Return the values of *response* that its mapper has made: ids and times."""
    provenance = response.get("metadata", {}).get("provenance", {})
    synthetic = {path for path, why in provenance.items() if why == Provenance.SYNTHETIC}
    calls = response.get("message", {}).get("tool_calls", ())
    found = {response[name] for name in ("id", "created") if name in synthetic}
    return found | {
        call["id"] for number, call in enumerate(calls) if f"message.tool_calls[{number}].id" in synthetic
    }
