"""The corpus: captures that may be published, the statements about them, and the canonical JSON that they are read as.

It tests a plugin, and any other program that writes canonical JSON. All of its captures were recorded by this project from
servers that it ran itself, or written after a provider's public documents; the README beside them says which.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Self

import attrs
import orjson

from crosswalk.codec import from_json
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.testing.captures import Capture, load_captures, stated_differences
from crosswalk.testing.changes import changes_between, shown
from crosswalk.testing.problems import Problem
from crosswalk.types.response import ChatResponse

_PLACES = (Path(__file__).parent / "corpus.zip", Path(__file__).parents[3])
"""The archive of a wheel, and the folder of a clone."""


@attrs.frozen
class Corpus:
    """Captures and what they are read as, in a folder for each provider.

    Attributes:
        captures: the folder of captures, statements and exceptions.
        canonical: the folder of canonical JSON: ``PROVIDER/CASE.json``, an object with ``response``, or with ``error``,
            the name of what must be raised, and ``partial``.
    """

    captures: Path
    canonical: Path

    @classmethod
    def installed(cls, places: Iterable[Path] | None = None) -> Self:
        """The corpus that comes with Crosswalk.

        That of a wheel is an archive. It is unpacked once, into a temporary folder that goes with the process.

        Args:
            places: archives, and folders with what is in an archive, of which the first that has a corpus counts. ``None``
                for those of a wheel and of a clone.

        Raises:
            ConfigurationError: none of them has one, or an archive cannot be unpacked.
        """
        for place in _PLACES if places is None else places:
            root = _unpacked(place) if place.is_file() else place
            captures, canonical = root / "tests/captures", root / "snapshots"
            if captures.is_dir() and canonical.is_dir():
                return cls(captures, canonical)
        raise ConfigurationError("this installation has no corpus")

    def providers(self) -> list[str]:
        """The providers of which it has captures."""
        return sorted(folder.name for folder in self.canonical.iterdir() if folder.is_dir())

    def load(self, provider: str) -> list[tuple[Capture, Any]]:
        """The captures of *provider*, each with its canonical JSON.

        Raises:
            ConfigurationError: there are none.
        """
        if provider not in self.providers():
            names = ", ".join(self.providers())
            message = f"the corpus has no captures of {provider[:60]!r}; it has those of {names}"
            raise ConfigurationError(message)
        return [
            (capture, orjson.loads((self.canonical / provider / f"{capture.case}.json").read_bytes()))
            for capture in load_captures(self.captures / provider)
        ]


@cache
def _unpacked(archive: Path) -> Path:
    try:
        folder = tempfile.mkdtemp(prefix="crosswalk-corpus-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        with zipfile.ZipFile(archive) as members:
            members.extractall(folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise ConfigurationError(f"{archive}: cannot be unpacked: {error}", source=str(archive)) from None
    return Path(folder)


def compare_answer(capture: Capture, canonical: Any, answer: Any) -> list[Problem]:
    """Compare *answer*, which a mapper made of *capture*, with its statement and its canonical JSON.

    Compared is what the provider said: not an id or a time that a mapper makes up, nor the words of an error.

    Args:
        capture: the capture.
        canonical: its canonical JSON, from :meth:`Corpus.load`.
        answer: decoded JSON of the same shape, or the response alone.
    """
    if isinstance(answer, dict) and "message" in answer and not answer.keys() & {"response", "error"}:
        answer = {"response": answer}
    try:
        differences = list(_differences(capture, canonical, answer))
    except CrosswalkError as error:
        differences = [("canonical JSON", "", f"cannot be read as a response: {error}")]
    case = capture.case
    return [
        Problem("P4", f"{case}, {path or check}", message, check, path, case, fields=(path,))
        for check, path, message in differences
    ]


def _differences(capture: Capture, canonical: Any, answer: Any) -> Iterator[tuple[str, str, str]]:
    if not isinstance(answer, dict) or not answer.keys() & {"response", "error"}:
        yield "canonical JSON", "", "is not an object with a response or an error"
        return
    response_json = answer.get("response", answer.get("partial"))
    response = None if response_json is None else from_json(orjson.dumps(response_json), ChatResponse)
    if answer.get("error") != canonical.get("error"):
        yield "canonical JSON", "error", f"{canonical.get('error')} -> {answer.get('error')}"
        return
    for fact, message in stated_differences(capture.says or {}, response, answer.get("error")):
        yield "as stated", fact, message
    before, after = (
        {"message": ""} | {key: one[key] for key in _COMPARED_KEYS & one.keys()}
        for one in (canonical, answer)
    )
    for one in changes_between(before, after):
        yield "canonical JSON", one.field, " -> ".join(shown(one))


_COMPARED_KEYS = {"response", "error", "partial"}
