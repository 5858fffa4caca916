"""Recordings that are about to become captures: their files, and a draft of the statement about them."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from crosswalk.drafts import written
from crosswalk.errors import FramingError, MappingError
from crosswalk.manifest import MANIFEST
from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.plugin.registry import Registry, event_type
from crosswalk.service.endpoint import encoded_forms
from crosswalk.testing.answers import LIMITS, options_of
from crosswalk.testing.captures import COUNTS, NAMES, json_object
from crosswalk.testing.perturbation import at, leaves, nodes, outcome, scalars, show_path
from crosswalk.text import holds_key
from crosswalk.types.values import ErrorKind, FinishReason
from crosswalk.wire import chat, gemini, messages, ollama
from crosswalk.wire.framing import Limits, SniffingDecoder, is_done, load_event

# -------------------------------------------------------------------------------- recorded
# Recordings: exchanges that are about to become captures, and the writing of their files.


_SUFFIXES: Final = {
    "application/json": ".json",
    "application/problem+json": ".json",
    "text/event-stream": ".sse",
    "application/x-ndjson": ".ndjson",
}


@attrs.define(kw_only=True)
class Recording:
    """A request, and the part of its answer that has arrived.

    Attributes:
        is_stream: whether a stream was requested.
        method: the HTTP method.
        path: the provider's own path, with its query.
        headers: the headers that the API needs apart from content type and credentials.
        request: the body as it was sent.
        status: the HTTP status, or ``None`` if no answer began.
        content_type: the content type that the server sent, or ``None`` if it sent none.
        body: the answer's bytes.
        is_complete: whether the body ended as HTTP requires.
    """

    is_stream: bool
    method: str
    path: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    request: bytes = attrs.field(repr=False)
    status: int | None = None
    content_type: str | None = None
    body: bytearray = attrs.field(factory=bytearray, repr=False)
    is_complete: bool = False

    def quotes(self, secrets: Iterable[str]) -> bool:
        """Whether the files to be written contain one of *secrets*, the values of headers."""
        file_contents = [self.request, bytes(self.body), f"{self.path} {self.content_type}".encode()]
        file_contents += [_ESCAPE.sub(_unescaped, text) for text in file_contents]
        for secret in secrets:
            key = secret.rpartition(" ")[2]
            # It may be as short as EMPTY.
            key_pattern = re.compile(rb"(?<![\w-])%s(?![\w-])" % re.escape(key.encode()))
            encoded_keys = [form.encode() for form in encoded_forms(key) if form != key]
            if any(
                key_pattern.search(text) or any(form in text for form in encoded_keys)
                for text in file_contents
            ):
                return True
        return False

    @property
    def holds_key(self) -> bool:
        """Whether the files to be written contain a text that looks like a key, no matter which."""
        body = bytes(self.body).decode(errors="replace")
        return holds_key(f"{self.request.decode()} {self.path} {self.content_type} {body}")

    @property
    def suffix(self) -> str:
        """The suffix of the file's name."""
        media_type = (self.content_type or "").partition(";")[0].strip().lower()
        return _SUFFIXES.get(media_type, ".txt")


def store_capture(
    folder: Path, case: str, recording: Recording, *, provider: str, pair: str | None = None
) -> Path:
    """Write *recording* as the capture *case*: its request, its answer, and the line about them.

    Args:
        folder: the folder to write to.
        case: its name there.
        recording: the exchange. Its answer has begun.
        provider: the provider id.
        pair: the name that it shares with the other form of the same answer, or ``None`` if there is no other form.

    Returns:
        The file of the answer.

    Raises:
        OSError: it cannot be written. No part of it is left on the disk then, and the name is free.
    """
    answer_file = folder / f"{case}.response{recording.suffix}"
    request_file = folder / f"{case}.request.json"
    entry = {
        "file": "",
        "server": provider,
        "method": recording.method,
        "path": recording.path.partition("?")[0],
        "request": "",
        "stream": recording.is_stream,
        "status": recording.status,
        "content_type": recording.content_type,
        "complete": recording.is_complete,
        "pair": pair or case,
    }
    files: list[Path] = []
    try:
        for file, data in ((request_file, recording.request), (answer_file, recording.body)):
            with written(file, replace=False) as out:
                out.write(data)
            files.append(file)
        _note(folder, entry, answer_file, request_file)
    except OSError:
        for file in files:
            file.unlink()
        raise
    return answer_file


def _note(folder: Path, entry: dict[str, Any], answer_file: Path, request_file: Path) -> None:
    """Add *entry* to the manifest, which names files relative to its own folder."""
    manifest = _manifest(folder)
    relative_folder = folder.resolve().relative_to(manifest.parent)
    file_fields = {
        "file": (relative_folder / answer_file.name).as_posix(),
        "request": (relative_folder / request_file.name).as_posix(),
    }
    with manifest.open("a+b") as manifest_file:
        end = manifest_file.seek(0, os.SEEK_END)
        manifest_file.seek(max(end - 1, 0))
        is_mid_line = manifest_file.read(1) not in (b"", b"\n")
        try:
            manifest_file.write(b"\n" * is_mid_line + orjson.dumps(entry | file_fields) + b"\n")
            manifest_file.flush()
        except OSError:
            manifest_file.truncate(end)  # half a line would make the whole manifest unreadable
            raise


def _manifest(folder: Path) -> Path:
    """Return the manifest that readers of the folder use: its own, or else the next one above, if there is one."""
    own_folder = folder.resolve()
    for candidate in (own_folder, *own_folder.parents[:4]):
        if (candidate / MANIFEST).is_file():
            return candidate / MANIFEST
    return own_folder / MANIFEST


_ESCAPE: Final = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|/)")


def _unescaped(match: re.Match[bytes]) -> bytes:
    """Return the character that JSON has escaped, as some servers do without need."""
    return bytes([int(match[1], 16)]) if match[1] else b"/"


# -------------------------------------------------------------------------------- drafting
# Draft a statement about a capture, from its bytes and its request, before there is a plugin.


_NOTE: Final = (
    f"Add each fact that 'found' and the provider's documents show, of {', '.join(NAMES)}; null means that there is none, "
    "but 'finish' and 'complete' need a value. Then remove 'draft' and 'found'."
)
_LONGEST: Final = 2_000
"""The number of characters of a value that are shown."""


def draft_statement(
    body: bytes, *, request: bytes | None = None, status: int = 200, complete: bool = True
) -> dict[str, Any]:
    """Draft the statement about an answer.

    It has only facts that need no mapping: an HTTP error, a body that was cut, an ``id`` and a ``model`` that the answer
    calls so, the requested model if the answer names it, and ``length`` if the answer has a count that equals the requested
    limit. All values of the payload are listed under ``found``, by their paths, for the author to choose from.

    Args:
        body: the bytes of the answer.
        request: the body of the request, or ``None`` if it is unknown.
        status: the HTTP status.
        complete: whether the body ended as HTTP requires.
    """
    events = _events(body)
    facts: dict[str, Any] = {}
    values = [leaf.value for leaf in leaves(events)]
    for name in ("id", "model"):
        named = {
            leaf.value for leaf in leaves(events) if _row(show_path(leaf.path), [leaf.value]) == name.upper()
        }
        facts |= dict.fromkeys([name], *named) if len(named) == 1 else {}
    options = dict(options_of(request))
    if options.get("model") is not None and options["model"] in values:
        facts["model"] = options["model"]
    if any(options[name] in values for name in LIMITS & options.keys()):
        facts |= {"finish": "length", "complete": False}
    if status >= 400:
        facts |= {"finish": "error", "complete": False}
        kind = ErrorKind.SERVER if status >= 500 else _KINDS.get(status)
        facts |= {"error": kind, "retryable": status >= 500} if kind else {}
    elif not complete:
        facts |= {"finish": "error", "complete": False, "raises": "IncompleteStreamError"}
    return {"draft": _NOTE, **facts, "found": _found(events)}


_KINDS: Final = {401: ErrorKind.AUTHENTICATION, 403: ErrorKind.PERMISSION}
"""The statuses below 500 that mean one kind of error. Others need a look at the payload."""


def _events(body: bytes) -> list[Any]:
    """Return the decoded events of *body*. There are none if only one provider has its framing."""
    return [event for event, _ in _named_events(body)]


def _named_events(body: bytes) -> list[tuple[Any, str | None]]:
    """Return the decoded events of *body*, each with its name."""
    decoder = SniffingDecoder(Limits())
    try:
        frames = [*decoder.decode(body), *decoder.flush()]
        return [(_event(data, name), name) for data, name in frames if data and not is_done(data)]
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
    """Return the values of *events* by their paths: the pieces of a text joined, several words as a list, the last number.

    Texts of items with different places, or with a different ``index``, are not joined.
    """
    values: dict[str, Any] = {}
    texts: dict[str, dict[str, list[str]]] = {}
    for leaf in leaves(events):
        path, event = show_path(leaf.path, items=False), events[leaf.event]
        values[path] = leaf.value
        if isinstance(leaf.value, str):
            numbers = [at(event, (*leaf.path[:depth], "index")) for depth in range(len(leaf.path))]
            texts.setdefault(path, {}).setdefault(f"{leaf.path} {numbers}", []).append(leaf.value)
    for path, pieces in texts.items():
        shown = [*dict.fromkeys(text for one in pieces.values() for text in _joined(path, one))]
        values[path] = shown if len(shown) > 1 else shown[0]
    return values


def _joined(path: str, pieces: list[str]) -> list[str]:
    is_said = _row(path, pieces) in _ANYWHERE or _SPOKEN.search("".join(pieces))
    texts = [""] if len({*pieces}) > 1 and is_said else pieces
    for piece in pieces if texts is not pieces else ():
        if json_object(texts[-1]) is not None:  # the arguments of another call begin
            texts.append("")
        texts[-1] += piece
    return [f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text for text in texts]


_SPOKEN: Final = re.compile(r"""[\s{}"!?,]""")
"""What a text or JSON has, and an id, a name, a type or a time has not."""


# ---------------------------------------------------------------------------------- tables
# Draft the table of a plain wire: a row for each field whose name is one of the field's standard names.


_FORMATS: Final = (chat.COUNTS, messages.COUNTS, gemini.COUNTS, ollama.COUNTS)
_ROLE: Final = 'same("assistant")'
_KEYS: Final[dict[str, tuple[type, frozenset[str]]]] = {
    "TEXT": (str, frozenset({"text", "content", "response", "generated_text", "completion"})),
    "REASONING": (str, frozenset({"reasoning_content", "reasoning", "thinking"})),
    "REFUSAL": (str, frozenset({"refusal"})),
    "FINISH": (str, frozenset({"finish_reason", "stop_reason", "finishReason", "done_reason"})),
    "ID": (str, frozenset({"id", "responseId"})),
    "MODEL": (str, frozenset({"model", "modelVersion"})),
    "CREATED": (int, frozenset({"created", "created_at"})),
    _ROLE: (str, frozenset({"role"})),
    **{
        f'count("{name}")': (
            int,
            frozenset(paths[name].rpartition(".")[2] for paths in _FORMATS if name in paths),
        )
        for name in COUNTS
    },
}
"""By row, the type of its values and the keys that mean it with OpenAI, Anthropic, Gemini, Ollama or TGI."""
_WORDS: Final = {
    **gemini.FINISH_REASONS, **messages.FINISH_REASONS, **ollama.FINISH_REASONS, **chat.FINISH_REASONS,
    **{name: reason for reason in FinishReason for name in (reason.value, reason.name)},
}  # fmt: skip
"""The finish words that have the same meaning for all who write them."""
_ANYWHERE: Final = ("TEXT", "REASONING", "REFUSAL", "FINISH", _ROLE)
"""The rows that may be in an object or an array."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)")
"""A time that the row of the time of creation takes as a text."""


@attrs.frozen
class TableDraft:
    """A first table of fields.

    Attributes:
        obstacle: why the wire is not plain, or ``None`` if a table can read it. The other attributes are empty then.
        rows: the source of each row, such as ``count("prompt_tokens")``, by path.
        unknown: what was recorded at each other path, for people.
        words: the meaning of each recorded finish word, ``None`` if it is unknown.
        rivals: by the path of a row, the other paths whose names mean the same, if an event has both.
        is_chat: whether it is OpenAI's Chat Completions. Then it has no rows, and only the words that OpenAI has not.
        others: the number of answers that are not, and need another dialect.
    """

    obstacle: str | None
    rows: Mapping[str, str] = attrs.field(factory=dict)
    unknown: Mapping[str, str] = attrs.field(factory=dict)
    words: Mapping[str, FinishReason | None] = attrs.field(factory=dict)
    rivals: Mapping[str, list[str]] = attrs.field(factory=dict)
    is_chat: bool = False
    others: int = 0


NO_TABLE: Final = TableDraft("no answer was recorded")
"""The draft where there is nothing to draft from."""


def draft_table(bodies: Iterable[bytes]) -> TableDraft:
    """Draft the table of a provider from the *bodies* of its answers, whole and streamed, without HTTP errors.

    A field gets a row only by its name and the type of its values. Of several fields for one thing, the outermost gets it,
    or the one in ``tokens``, and another one if no event has both.
    """
    bodies = list(bodies)
    answers = [_named_events(body) for body in bodies]
    chats = [one for one in map(_is_chat, answers) if one is not None]
    if sum(chats) * 2 > len(chats):
        return attrs.evolve(_draft_chat(bodies, answers), others=len(chats) - sum(chats))
    if any(chats):
        share = f"{sum(chats)} of {len(chats)} answers are Chat Completions, which OpenAIChatDialect reads"
        return TableDraft(f"{share} (take each API by itself, and join both with DialectFamily)")
    obstacle = next(filter(None, map(_obstacle, bodies, answers)), None)
    if obstacle is not None or not answers:
        return TableDraft(obstacle) if obstacle else NO_TABLE
    events = [event for answer in answers for event, _ in answer if not event.get("error")]
    calls_path, calls_row = _calls(events)
    values: dict[str, dict[int, Any]] = {}
    for leaf in leaves(events):
        path = _row_path(leaf.path)
        if path is not None and leaf.value is not None and path.partition("[]")[0] != calls_path:
            values.setdefault(path, {})[leaf.event] = leaf.value
    rows: dict[str, str] = {}
    rivals: dict[str, list[str]] = {}
    for path in sorted(values, key=lambda path: (path.count("."), ".tokens." not in path)):
        row = _row(path, values[path].values())
        same_rows = [other for other in rows if rows[other] == row != _ROLE]
        beside = next((one for one in same_rows if not values[path].keys().isdisjoint(values[one])), None)
        if beside is not None:
            rivals.setdefault(beside, []).append(path)
        elif row is not None:
            rows[path] = row
    words = {word for path, row in rows.items() if row == "FINISH" for word in values[path].values() if word}
    return TableDraft(
        None,
        {path: rows[path] for path in values if path in rows}
        | ({calls_path: calls_row} if calls_path else {}),
        _shown({path: [*seen.values()][-1] for path, seen in values.items() if path not in rows}),
        {word: _WORDS.get(word) for word in sorted(words)},
        rivals,
    )


def _is_chat(answer: list[tuple[Any, str | None]]) -> bool | None:
    """Whether *answer* is one of OpenAI's Chat Completions or Completions. ``None`` if it only fails, or is empty."""
    parts = {key for choice in _choices(answer) if isinstance(choice, dict) for key in choice}
    has_events = any(not (isinstance(event, dict) and event.get("error")) for event, _ in answer)
    return not parts.isdisjoint(("message", "delta", "text")) if has_events else None


def _choices(answer: list[tuple[Any, str | None]]) -> list[Any]:
    events = [event for event, _ in answer if isinstance(event, dict) and not event.get("error")]
    lists = [event["choices"] for event in events if isinstance(event.get("choices"), list)]
    return [choice for choices in lists for choice in choices]


def _draft_chat(bodies: Iterable[bytes], answers: Iterable[list[tuple[Any, str | None]]]) -> TableDraft:
    """Draft the differences of *answers* from OpenAI's: what its dialect leaves in the *bodies*, and other finish words."""
    registry = Registry(installed=[], environ={})
    registry.register(OpenAIChatDialect(), "chat")
    left: dict[str, Any] = {}
    for body in bodies:
        response = outcome(registry.mapper("chat"), [body], as_bytes=b"".join).response or {}
        extensions = response.get("metadata", {}).get("extensions", {})
        left |= {show_path(path, items=False): value for path, value in scalars(extensions)}
    words = {choice.get("finish_reason") for answer in answers for choice in _choices(answer)}
    unknown_words = sorted(word for word in words - OpenAIChatDialect.finish_reasons.keys() if word)
    return TableDraft(
        None,
        unknown=_shown(
            {path: value for path, value in left.items() if path.rpartition(".")[2] not in _OPENAI}
        ),
        words={word: _WORDS.get(word) for word in unknown_words},
        is_chat=True,
    )


_OPENAI: Final = {"object", "index", "role", "system_fingerprint", "service_tier", "annotations", "audio"}
"""Fields of OpenAI's own that are kept as sent."""


def _obstacle(body: bytes, answer: list[tuple[Any, str | None]]) -> str | None:
    """Return why a table cannot read the events of one *answer*, which have names, or ``None``."""
    if not answer:
        with suppress(orjson.JSONDecodeError):
            if [orjson.loads(line) for line in body.splitlines() if line.strip()]:
                return "a stream has lines of JSON that are no objects (it needs a framing, and rows by position)"
        return "an answer is neither JSON nor a stream of it"
    if not all(isinstance(event, dict) for event, _ in answer):
        return "an event is not an object"
    events = [(event, name) for event, name in answer if not event.get("error")]
    types = dict.fromkeys(filter(None, (event_type(event) or name for event, name in events)))
    if len(types) > 1:
        return f"the events of a stream have types: {', '.join(types)}"
    texts: dict[str, list[str]] = {}
    for leaf in leaves([event for event, _ in events]):
        *holder, key = leaf.path
        if key == "index" and len(holder) == 2 and isinstance(holder[1], int) and holder[0] != "tool_calls":
            return f"{show_path(leaf.path, items=False)} numbers the answers"
        if key in _KEYS["TEXT"][1] and isinstance(leaf.value, str):
            texts.setdefault(show_path(leaf.path), []).append(leaf.value)
    for path, pieces in texts.items():
        if len(pieces) > 2 and all(two != one and two.startswith(one) for one, two in pairwise(pieces)):
            return f"{path} holds all of the text so far"
    return None


def _row_path(path: tuple[str | int, ...]) -> str | None:
    """Return *path* as a row writes it, or ``None`` if none can: an item that is no object, or an odd key."""
    is_plain = all(isinstance(key, str) or isinstance(inner, str) for key, inner in pairwise((*path, 0)))
    keys_are_plain = all(isinstance(key, int) or _PLAIN_KEY.fullmatch(key) for key in path)
    return show_path(path, items=False) if is_plain and keys_are_plain else None


_PLAIN_KEY: Final = re.compile(r"[\w@$:-]+")


def _row(path: str, values: Iterable[Any]) -> str | None:
    """Return the source of the row that the name of a *path* stands for, if all *values* are of its type."""
    key, has_items, is_inner = path.rpartition(".")[2], "[]" in path, "." in path
    for row, (kind, keys) in _KEYS.items():
        is_known = key in keys and all(_is_of(row, kind, value) for value in values)
        if is_known and (row in _ANYWHERE or (not has_items and (not is_inner or row.startswith("count(")))):
            return row
    return None


def _is_of(row: str, kind: type, value: Any) -> bool:
    """Whether *value* is one of *row*, whose values are of this *kind*."""
    if isinstance(value, str) and row in ("CREATED", _ROLE):
        return value == "assistant" if row == _ROLE else _TIME.fullmatch(value) is not None
    return type(value) is kind


def _calls(events: list[Any]) -> tuple[str | None, str]:
    """Return the path of the array of calls, if there is one by its standard name, and the source of its row."""
    for event in events:
        for path, calls in nodes(event, kind=list):
            is_outside = path[-1:] == ("tool_calls",) and all(isinstance(key, str) for key in path)
            if is_outside and isinstance(calls[0], dict):
                is_nested = isinstance(calls[0].get("function"), dict)
                return show_path(path), 'calls(function="function")' if is_nested else "calls()"
    return None, ""


def _shown(values: Mapping[str, Any]) -> dict[str, str]:
    """Return *values*, by their paths, for comments. The fields of an object with many of them are only counted."""
    counts = Counter(path.rpartition(".")[0] for path in values)
    shown: dict[str, str] = {}
    for path, value in values.items():
        holder = path.rpartition(".")[0]
        text = json.dumps(value)
        if holder and counts[holder] > _MOST_FIELDS:
            shown[holder] = f"{counts[holder]} fields"
        else:
            shown[path] = text if len(text) <= _SHORTEST else f"{text[:_SHORTEST]}..."
    return shown


_MOST_FIELDS: Final = 8
_SHORTEST: Final = 30
"""The number of characters of a value in a comment."""
