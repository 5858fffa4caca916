"""What became of each row before each target.

Only what is sent is judged: the body, and what the library says of it (``dropped``, or the error that refuses it). What a row
adds to a request is found again by its markers. Where a row has none, as a truth value, the bodies with and without it differ.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.service import build_http_request, read_request

from .bodies import (
    MARKER,
    Place,
    empties,
    is_text,
    leaves,
    marker_in,
    said_text,
    speaker_of,
    text_in_base64,
    value_at,
    written,
)
from .places import TEXT, place_of
from .shapes import checks

__all__ = [
    "FORMATS",
    "OWN",
    "TARGETS",
    "WRONG",
    "Finding",
    "Loss",
    "Refused",
    "Row",
    "Send",
    "Sent",
    "Verdict",
    "arrived_in_place",
    "counted",
    "judged",
    "rows",
    "sampled",
    "send",
]

FORMATS: Final = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "messages": "anthropic",
    "gemini": "gemini",
    "ollama": "ollama",
}
"""The formats in which clients ask, by the names that the library has for them."""
OWN: Final = {
    "chat": "openai",
    "responses": "openai_responses",
    "messages": "anthropic",
    "gemini": "gemini",
    "ollama": "ollama",
}
"""The server whose own format each is."""
TARGETS: Final = {
    "openai": "chat",
    "vllm": "chat",
    "openai_responses": "responses",
    "anthropic": "messages",
    "gemini": "gemini",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "ollama": "ollama",
    "mistral": "mistral",
}
"""The servers that are asked, each with the format of its own types."""


class Verdict(StrEnum):
    """What became of a row. The first five are right, the others wrong."""

    ARRIVES = "arrives"
    TOLD = "told"
    """It is told in words."""
    DROPPED = "dropped by name"
    REFUSED = "refused by name"
    SAME = "same"
    """In its own format it is what the client sent."""
    NOT_SAME = "not the same"
    """In its own format it is something else, or refused."""
    VANISHED = "vanished"
    UNNAMED = "hint unnamed"
    """A hint that the target has no place for is gone, and nothing says so."""
    INVENTED = "invented"
    """There are words that the client did not say."""
    EMPTIED = "emptied"
    """A turn or a result says nothing, though the client's does."""
    CHANGED = "changed"
    """Somebody else says it, or both truth values are sent as one."""
    MALFORMED = "malformed"
    """The target's own types refuse it."""
    CRASHED = "crashed"
    FALSE_NO_PLACE = "false no place"
    """It is dropped or refused, and the target has a place for it."""
    STATE_DROPPED = "state dropped"


WRONG: Final = tuple(Verdict)[tuple(Verdict).index(Verdict.NOT_SAME) :]

_STATE: Final = re.compile(
    r"^(conversation\[|prompt$|thread\[|container\[(str|BetaContainerParams)\]$|cached_content$|continuation_token$)"
    r"|\[item_reference\]$"
)
"""Rows that refer to something that a server keeps: without it the request is another one."""
_HINT: Final = re.compile(
    r"cache_control|prompt_cache|cachePoint|^(user|safety_identifier|metadata|store|service_tier|labels|diagnostics)\b"
    r"|^inference_geo|^speed\b"
)
"""Rows that say nothing about the answer: cache marks, tiers, labels of users, and what servers keep for themselves."""
_OF_GATEWAY: Final = re.compile(r"^(stream_options|previous_response_id|store)\b")
"""What the gateway does itself before any server: it counts, and it keeps answers."""
_COVERS: Final = {
    "hosted_tools": re.compile(r"tools\["),
    "tool_choice": re.compile("tool_choice"),
    "response_format": re.compile("response_format"),
    "cache_marks": re.compile(r".*\.(cache_control|prompt_cache_breakpoint)\b"),
    "mcp_servers": re.compile(r"tools\["),
    "mcp_servers.allowed_tools": re.compile(r"tools\[\d+\]\.allowed_tools\b"),
    "mcp_servers.approval": re.compile(r"tools\[\d+\]\.require_approval\b"),
}
"""Names of losses that stand for places of other names. A cache mark is named with its lifetime, and a server with its details."""
_ITEM: Final = re.compile(r"input\[\d+\]")
_HONEST: Final = re.compile(
    r"^\(an? [a-z]+: [a-z/+-]+(, the next message of the user shows it)?\)"
    r"|^The result is shown in the next message of the user\.$|^What .{1,40} gave:$"
    r"|^Answer with one JSON (object|value) and nothing else: "
)
"""Words in the place of a picture or a file that no server takes there, or in the next message: they say what is so. And
words that tell a schema to a server without a place for it, as structured answers demand."""
_LINKS: Final = frozenset(
    [
        "id",
        "call_id",
        "tool_use_id",
        "tool_call_id",
        "item_id",
        "response_id",
        "approval_request_id",
        "parent_id",
        "created_at",
        "expires_at",
        "agent_name",
        "title_id",
    ]
)
"""Fields that tie one part of a request to another. Their values may be others, if they still tie."""


@attrs.frozen(eq=False)
class Row:
    """A row of a format: see ``scripts/request_words.py``.

    Attributes:
        format: the client's format.
        name: the place that it is about.
        kind: ``variant``, ``field``, ``word`` or ``flag``.
        body: a request that says it.
        without: the same request without it.
    """

    format: str
    name: str
    kind: str
    body: Mapping[str, Any]
    without: Mapping[str, Any]

    @property
    def group(self) -> str:
        """The name without the word: what all words of an enumeration have in common."""
        return re.sub(r"=[^=]*$", "", self.name)

    @cached_property
    def added(self) -> list[tuple[Place, Any]]:
        """What the body says and the one without does not."""
        before = dict(leaves(self.without))
        return [
            (place, one) for place, one in leaves(self.body) if place not in before or before[place] != one
        ]

    @cached_property
    def signs(self) -> list[tuple[Place, Any]]:
        """The markers and numbers that the row adds, each where the client says it."""
        found: list[tuple[Place, Any]] = []
        numbers = [one for _, one in leaves(self.without) if type(one) in (int, float)]
        for place, one in self.added:
            in_keys = [key for step in place if isinstance(step, str) and (key := MARKER.search(step))]
            if isinstance(one, str) and (marker := marker_in(one)):
                if not self._is_link(place):
                    found.append((place, marker))
            elif in_keys:
                found.append((place, in_keys[0][0]))
            elif type(one) in (int, float) and one not in (0, 1, *numbers):
                found.append((place, one))
        return found

    def _is_link(self, place: Place) -> bool:
        field = next((step for step in reversed(place) if isinstance(step, str)), "")
        speaker = speaker_of(self.body, place)
        is_link = field in _LINKS or (field.endswith("_id") and field not in ("file_id", "user_id"))
        is_link |= field in ("name", "tool_name") and speaker == "tool"
        return is_link and not (len(self.added) == 1 and speaker == "option")


class Loss(NamedTuple):
    """Something that the library says it has not sent.

    Attributes:
        option: its place or name.
        reason: why.
        refuses: whether the request is refused for it unless the caller allows the loss.
    """

    option: str
    reason: str
    refuses: bool


class Sent(NamedTuple):
    """What is sent, and what the library says of it."""

    body: dict[str, Any]
    losses: tuple[Loss, ...]
    added: tuple[Any, ...] = ()
    """The values that the library says it has added, because the target demands them."""


class Refused(NamedTuple):
    """The request is refused, in these words. *is_typed* is whether by an error of the library."""

    why: str
    is_typed: bool


Send = Callable[[Mapping[str, Any], str, str], Sent | Refused]
"""Turns a request of a client into what is sent: its body, its format, and the target."""


@lru_cache(maxsize=64)
def _read(body: str, format: str) -> Any:
    """Read a request once, for all targets."""
    return read_request(body, FORMATS[format], model="m" if format == "gemini" else None)


def send(body: Mapping[str, Any], format: str, target: str) -> Sent | Refused:
    """Send *body* as the gateway does, which keeps two fields of Responses for itself. Losses are allowed, and named."""
    try:
        incoming = _read(json.dumps(body), format)
        if format == "responses" and target != "openai_responses":
            incoming = incoming.without("previous_response_id", "store")
        built = build_http_request(incoming.request, target, on_unsupported="drop")
    except CrosswalkError as error:
        return Refused(str(error), is_typed=True)
    except Exception as error:  # judged, not raised: a crash is one cell
        return Refused(f"{type(error).__name__}: {error}", is_typed=False)
    named = [one for one in built.adaptations if one.kind.value not in ("added", "defaulted", "told")]
    losses = tuple(Loss(one.field, one.reason, one.refuses) for one in named)
    added = tuple(one.sent for one in built.adaptations if one.kind.value in ("added", "defaulted"))
    return Sent(dict(built.body), losses, added)


class Finding(NamedTuple):
    """What became of *row* before *target*.

    Attributes:
        row: the row.
        target: the provider.
        verdict: what became of it.
        note: what shows it.
        refuses: whether it is an error unless the caller allows losses.
    """

    row: Row
    target: str
    verdict: Verdict
    note: str = ""
    refuses: bool = False

    @property
    def is_hint(self) -> bool:
        """Whether the row says nothing about the answer itself."""
        return bool(_HINT.search(self.row.name))

    @property
    def place(self) -> str | None:
        """The place that the target's own types have for it."""
        return place_of(self.row.format, self.row.name, TARGETS[self.target], self.target)


# Reading the rows.


def rows(folder: Path = Path(__file__).parent) -> list[Row]:
    """Return all rows, in the order of their files."""
    return [row for format in FORMATS for row in _rows_of(format, folder)]


def _rows_of(format: str, folder: Path) -> Iterator[Row]:
    least = _LEAST[format]
    for line in (folder / f"{format}.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        without = one.get("without", least)
        if "adds" in one:
            without = _removed(one["body"], one["adds"])
        yield Row(format, one["row"], one["kind"], one["body"], without)


def _removed(body: Any, place: list[str | int]) -> Any:
    """Return *body* without what stands at *place*."""
    step, *below = place
    if isinstance(body, list):
        return [_removed(one, below) if index == step else one for index, one in enumerate(body)]
    if below:
        return {key: _removed(one, below) if key == step else one for key, one in body.items()}
    return {key: one for key, one in body.items() if key != step}


_HI: Final = {"role": "user", "content": "Say hello to everyone."}
_LEAST: Final[dict[str, dict[str, Any]]] = {
    "chat": {"model": "m", "messages": [_HI]},
    "responses": {"model": "m", "input": _HI["content"]},
    "messages": {"model": "m", "max_tokens": 4000, "messages": [_HI]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": _HI["content"]}]}]},
    "ollama": {"model": "m", "messages": [_HI]},
}
"""The request of each format without any row."""


def sampled(found: Iterable[Row], one_of: int) -> list[Row]:
    """Return one of so many rows, the same ones every time: by a checksum of the name, so that new rows move no others.

    The words of an enumeration stay together, as they are judged together.
    """
    return [row for row in found if crc32(f"{row.format} {row.group}".encode()) % one_of == 0]


# Judging.


def judged(found: Iterable[Row], targets: Iterable[str] = TARGETS, sending: Send = send) -> list[Finding]:
    """Return what becomes of rows before targets, if *sending* sends them."""
    judge = _Judge(sending)
    every = [judge.finding(row, target) for row in found for target in targets]
    return [*_settled(every)]


class _Judge:
    def __init__(self, sending: Send) -> None:
        self._sending = sending
        self._checks = checks()
        self._without: dict[tuple[str, str, str], Sent | None] = {}

    def finding(self, row: Row, target: str) -> _Raw:
        sent = self._sending(row.body, row.format, target)
        if OWN[row.format] == target:
            return _Raw(row, target, *_in_own_format(row, sent))
        if isinstance(sent, Refused):
            verdict = Verdict.REFUSED if sent.is_typed else Verdict.CRASHED
            return _Raw(row, target, verdict, sent.why[:220], refuses=True)
        cell = _Cell(row, sent, self._sent_without(row, target), self._checks.get(target))
        return _Raw(row, target, *cell.verdict(), cell.refuses)

    def _sent_without(self, row: Row, target: str) -> Sent | None:
        """What is sent for the request without the row, or ``None`` if it is refused."""
        key = (row.format, json.dumps(row.without, sort_keys=True), target)
        if key not in self._without:
            sent = self._sending(row.without, row.format, target)
            self._without[key] = sent if isinstance(sent, Sent) else None
        return self._without[key]


_OF_THE_CALL: Final = ("model", "stream", "stream_options")
"""What the gateway sets for the server that it asks."""


def _in_own_format(row: Row, sent: Sent | Refused) -> tuple[Verdict, str]:
    if isinstance(sent, Refused):
        return Verdict.NOT_SAME, sent.why[:220]
    given = {key: one for key, one in row.body.items() if key not in _OF_THE_CALL}
    now = {key: one for key, one in sent.body.items() if key not in _OF_THE_CALL}
    if given == now:
        return Verdict.SAME, ""
    places = [place for place, _ in (*leaves(now), *leaves(given))]
    different = {written(place) for place in places if value_at(now, place) != value_at(given, place)}
    return Verdict.NOT_SAME, ", ".join(sorted(different))[:220]


class _Unsettled(StrEnum):
    """What can be judged only beside the other words of the enumeration."""

    OTHER_BODY = "the body is another one"
    SAME_BODY = "the body is the same as without"


class _Raw(NamedTuple):
    row: Row
    target: str
    verdict: Verdict | _Unsettled
    note: str
    refuses: bool = False


class _Cell:
    """One row before one target that is not of its format, and not refused."""

    def __init__(self, row: Row, sent: Sent, before: Sent | None, check: Callable[[Any], list[str]] | None):
        self._added = sent.added
        self._row, self._body, self._before, self._check = row, sent.body, before, check
        self._said, self._client_said = said_text(sent.body), said_text(row.body)
        self._named = [loss for loss in sent.losses if self._is_of_row(loss)]
        self.refuses = any(loss.refuses for loss in sent.losses)

    def verdict(self) -> tuple[Verdict | _Unsettled, str]:
        for verdict, find in (
            (Verdict.INVENTED, self._invented),
            (Verdict.EMPTIED, self._emptied),
            (Verdict.MALFORMED, self._malformed),
        ):
            if (note := find()) is not None:
                return verdict, note
        names = "; ".join(f"{loss.option} ({loss.reason})" for loss in self._named)[:200]
        missing = [(place, sign) for place, sign in self._row.signs if not self._is_said(place, sign)]
        is_same = self._before is not None and self._body == self._before.body
        if missing:
            if self._named:
                return Verdict.DROPPED, names
            place, sign = missing[0]
            return (Verdict.VANISHED if is_same else Verdict.CHANGED), f"{written(place)} = {str(sign)[:60]}"
        if moved := self._moved():
            return Verdict.CHANGED, moved
        if self._row.signs:
            return (Verdict.TOLD if self._is_told() else Verdict.ARRIVES), names
        return self._without_signs(names, is_same=is_same)

    def _without_signs(self, names: str, *, is_same: bool) -> tuple[Verdict | _Unsettled, str]:
        """A row of words, truth values, links or empty objects: there is nothing to look for."""
        added = [one for _, one in self._row.added]
        words = [one for one in added if isinstance(one, str) and not marker_in(one)]
        is_said = all(one in self._said or one.rpartition("/")[2] in self._said for one in words)
        if self._row.kind == "field" and words and is_said and not self._named:
            return Verdict.ARRIVES, ""
        if added and not self._named and all(isinstance(one, str) and marker_in(one) for one in added):
            return Verdict.ARRIVES, "a link between items, written anew"
        if all(one in ({}, []) for one in added) or self._row.name.endswith((".type", ".role")):
            return Verdict.ARRIVES, "nothing is said"
        if self._named:
            return Verdict.DROPPED, names
        if is_same or self._before is None:
            return _Unsettled.SAME_BODY, ""
        return _Unsettled.OTHER_BODY, json.dumps(self._body, sort_keys=True)

    def _is_of_row(self, loss: Loss) -> bool:
        """Whether *loss* is about the row, and not said without it as well."""
        if self._before is None or not any(loss[:2] == one[:2] for one in self._before.losses):
            return not self._is_of_call(loss)
        below = re.compile(re.escape(loss.option) + r"(?!\w)")
        covered = _COVERS.get(re.sub(r"\[\d+\]", "", loss.option))
        places = [written(place) for place, _ in self._row.added]
        return any(below.match(place) or (covered and covered.match(place)) for place in places)

    def _is_of_call(self, loss: Loss) -> bool:
        """Whether *loss* is about the call before a result, and the row about the result."""
        kind = re.search(r"\[(\w+_output)\]( and a turn)?$", self._row.name)
        results = [place[:2] for place, one in self._row.added if kind is not None and one == kind[1]]
        is_result = any(speaker_of(self._row.body, (*place, "type")) == "tool" for place in results)
        return is_result and loss.option not in map(written, results) and bool(_ITEM.fullmatch(loss.option))

    def _invented(self) -> str | None:
        """Words in the conversation that neither the client said nor a request without the row has."""
        before = "" if self._before is None else said_text(self._before.body)
        said_texts = [one for _, one in leaves(self._row.body) if isinstance(one, str) and one]
        decoded = [*map(text_in_base64, said_texts)]
        texts = sorted((*said_texts, *filter(None, decoded), *map(str, self._added)), key=len)
        for place, said in leaves(self._body):
            is_talk = place and place[0] in (
                "messages",
                "input",
                "contents",
                "system",
                "instructions",
                "systemInstruction",
            )
            if not (is_talk and isinstance(said, str) and _is_sentence(said)):
                continue
            if said in before or said in self._client_said or said in self._added:
                continue
            rest = said
            for text in reversed(texts):
                rest = rest.replace(text, "")
            rest = MARKER.sub("", rest)
            is_said = not _is_sentence(rest) or rest.strip() in self._client_said
            if is_said or re.search(r'[{\[]"', said) or _HONEST.search(said):
                continue
            if "not run" in said and not self._brings_results():
                continue  # the client itself left the call without a result
            return f"{written(place)}: {said[:120]!r}"
        return None

    def _brings_results(self) -> bool:
        ends = ("_output", "tool_result", "_response")
        return any(
            place[-1] == "type" and str(one).endswith(ends) for place, one in leaves(self._row.body) if place
        )

    def _emptied(self) -> str | None:
        before = () if self._before is None else {*empties(self._before.body)}
        empty = next((place for place in empties(self._body) if place not in before), None)
        return None if empty is None else f"{written(empty)} says nothing"

    def _malformed(self) -> str | None:
        if self._check is None:
            return None
        before = () if self._before is None else self._check(self._before.body)
        found = [one for one in self._check(self._body) if one not in before]
        return "; ".join(found)[:200] if found else None

    def _is_said(self, place: Place, sign: Any) -> bool:
        if isinstance(sign, str):
            return sign in self._said or str(value_at(self._row.body, place)) in self._said
        is_sent = any(type(one) in (int, float) and one == sign for _, one in leaves(self._body))
        return is_sent or str(sign) in self._said

    def _at(self, sign: str) -> list[Place]:
        """Where the target is told of *sign*."""
        return [
            place
            for place, one in leaves(self._body)
            if (isinstance(one, str) and sign in one) or any(sign in str(step) for step in place)
        ]

    def _moved(self) -> str | None:
        """What somebody else says now."""
        texts = [one for _, one in leaves(self._body) if isinstance(one, str)]
        if any(_HONEST.search(one) for one in texts):
            return None
        for place, sign in self._row.signs:
            speaker = speaker_of(self._row.body, place)
            speakers = (
                {speaker_of(self._body, one) for one in self._at(str(sign))} if isinstance(sign, str) else {}
            )
            is_near = not speakers or speaker in {*speakers, "option"} or "option" in speakers
            if not (is_near or (speaker == "tools" and "assistant" in speakers)):
                return f"{written(place)}: {speaker} became {', '.join(sorted(speakers))}"
        return None

    def _is_told(self) -> bool:
        """Whether what is no text of the client's, as a title, stands in a text of the conversation now."""
        for place, sign in self._row.signs:
            if isinstance(sign, str) and not is_text(place):
                places = self._at(sign)
                speakers = {speaker_of(self._body, one) for one in places}
                if places and all(map(is_text, places)) and not speakers & {"tools", "option"}:
                    return True
        return False


def _is_sentence(text: str) -> bool:
    return text.count(" ") >= 2


# Words of an enumeration, judged together.

_DEFAULT: Final = ("[text]", "[auto]", "=auto", "=AUTO", "=medium", "=false", "modalities")
"""Words that say what is so without them."""
_ENFORCED: Final = ("json_schema.strict=true", "format[json_schema].strict=true")
"""What servers do anyway that enforce schemas."""
_NO_PLACE_IS_SAID: Final = frozenset({Verdict.DROPPED, Verdict.REFUSED})
_VERSION_ALONE: Final = re.compile(r"tools\[0\]\.type \([^;]*")
"""The version of a hosted tool is named. The tool itself arrives."""
_RULE_BROKEN: Final = re.compile(r"(?:^|; )[^;]+ does not take an? [^;]+\)$")
"""The loss names the rule of the server's schemas that the client's value breaks. It does not deny the place."""


def _settled(found: list[_Raw]) -> Iterator[Finding]:
    groups: dict[tuple[str, str, str], list[_Raw]] = defaultdict(list)
    for one in found:
        groups[one.row.format, one.target, one.row.group].append(one)
    for one in found:
        verdict, note = one.verdict, one.note
        if isinstance(verdict, _Unsettled):
            verdict, note = _settle(one, groups[one.row.format, one.target, one.row.group])
        if verdict is Verdict.VANISHED and _OF_GATEWAY.search(one.row.name):
            verdict, note = Verdict.ARRIVES, "the gateway does it"
        settled = Finding(one.row, one.target, verdict, note, one.refuses)
        if verdict is Verdict.VANISHED and settled.is_hint and settled.place is None:
            settled = settled._replace(verdict=Verdict.UNNAMED)
        elif (
            verdict in _NO_PLACE_IS_SAID
            and settled.place is not None
            and not (_VERSION_ALONE.fullmatch(note) or _RULE_BROKEN.search(note))
        ):
            settled = settled._replace(verdict=Verdict.FALSE_NO_PLACE)
        elif verdict is Verdict.DROPPED and _STATE.search(one.row.name):
            settled = settled._replace(verdict=Verdict.STATE_DROPPED)
        yield settled


def _settle(one: _Raw, group: list[_Raw]) -> tuple[Verdict, str]:
    """Judge a row without signs by what the other words of its enumeration gave."""
    name, is_word = one.row.name, one.row.kind in ("word", "flag")
    if one.verdict is _Unsettled.OTHER_BODY:
        twin = next((other for other in group if other is not one and other.note == one.note), None)
        if twin is not None and one.row.kind == "flag":
            return Verdict.CHANGED, f"the same as {twin.row.name}"
        return Verdict.ARRIVES, "" if twin is None else f"the same as {twin.row.name}"
    is_default = name.endswith(_DEFAULT) or len(group) == 1
    is_default |= any(other.verdict is not _Unsettled.SAME_BODY for other in group)
    if name.endswith(_ENFORCED) or (
        (is_word or name.endswith(_DEFAULT)) and is_default and not _MARK.search(name)
    ):
        return Verdict.ARRIVES, "it is so without saying it"
    return Verdict.VANISHED, "the body is the same as without"


_MARK: Final = re.compile(r"cache_control|prompt_cache")


def arrived_in_place(one: Finding) -> bool:
    """Whether a row is where the target's own types have a place for it."""
    return one.verdict is Verdict.ARRIVES or (one.verdict is Verdict.TOLD and one.place == TEXT)


def counted(found: Iterable[Finding]) -> Counter[str]:
    """Return how many cells there are of each verdict; and how many have a place, and how many are there."""
    counts: Counter[str] = Counter()
    for one in found:
        counts[str(one.verdict)] += 1
        if OWN[one.row.format] != one.target and one.place is not None:
            counts["with a place"] += 1
            counts["in their place"] += arrived_in_place(one)
    return counts
