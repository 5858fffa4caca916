"""Whatever the official SDKs let a client say arrives at every server, is told in words, or is refused or dropped by name.

``tests/request_matrix`` has the rows and the judge. Without ``--thorough`` a sample of one row in twenty is sent, the same one every
time, and the rows are taken as their files have them. A thorough run sends all, and walks the SDKs' types anew.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from request_matrix.bodies import leaves
from request_matrix.judge import (
    FORMATS,
    TARGETS,
    Finding,
    Loss,
    Refused,
    Row,
    Send,
    Sent,
    Verdict,
    arrived_in_place,
    judged,
    rows,
    sampled,
    send,
)
from request_matrix.limits import (
    ALLOWED,
    HINT_REFUSED,
    KINDS,
    NOT_IN_PLACE,
    ONE_OF,
    failures,
    faults,
    limits_of,
    lower,
)
from request_matrix.places import MEANINGS, TEXT
from request_matrix.shapes import SDKS, missing_sdk

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts/request_words.py"
ROWS = rows()
CHECKED = [target for target in TARGETS if target != "vllm"]
"""The servers that have types of their own."""


def row(format: str, name: str) -> Row:
    return next(one for one in ROWS if (one.format, one.name) == (format, name))


def finding(one: Row, target: str, sending: Send = send) -> Finding:
    (found,) = judged([one], [target], sending)
    return found


# The matrix.


@pytest.mark.parametrize("target", CHECKED)
def test_bodies_are_held_against_the_types_of_the_target(target: str) -> None:
    reason = missing_sdk(target)
    if reason is not None:
        pytest.skip(f"no body is held against the types of {target}: {reason}")


@pytest.mark.untraced
def test_of_a_sample_nothing_is_lost_that_is_not_known() -> None:
    """Where this fails: ``PYTHONPATH=tests python -m request_matrix VERDICT FORMAT`` shows the cells."""
    assert failures(judged(sampled(ROWS, ONE_OF)), "sample") == []


@pytest.mark.sweep
def test_nothing_is_lost_that_is_not_known() -> None:
    """Where this fails: ``PYTHONPATH=tests python -m request_matrix VERDICT FORMAT`` shows the cells."""
    assert failures(judged(ROWS), "all") == []


def test_the_sample_is_one_row_in_twenty_of_every_format() -> None:
    sample = sampled(ROWS, ONE_OF)
    assert sampled(reversed(ROWS), ONE_OF) == sample[::-1]
    whole, some = (Counter(one.format for one in found) for found in (ROWS, sample))
    assert all(0 < some[format] / whole[format] < 0.15 for format in FORMATS)
    groups = {(one.format, one.group) for one in sample}
    assert [one for one in ROWS if (one.format, one.group) in groups] == sample


def test_limits_are_of_known_faults_and_of_a_part_no_more_than_of_the_whole() -> None:
    allowed = json.loads(ALLOWED.read_text(encoding="utf-8"))
    assert list(allowed) == ["all", "sample"]
    assert all(list(limits) == list(KINDS) for limits in allowed.values())
    for kind in KINDS:
        assert all(
            most <= allowed["all"][kind].get(format, 0) for format, most in allowed["sample"][kind].items()
        )


# The rows, and the places.


def test_each_row_adds_something_to_its_request() -> None:
    names = Counter((one.format, one.name) for one in ROWS)
    assert [name for name, count in names.items() if count > 1] == []
    least = "messages[][Message]"  # a message alone: the least that Ollama can be asked
    assert [f"{one.format} {one.name}" for one in ROWS if not one.added] == [f"ollama {least}"]


def names_of(format: str) -> list[str]:
    """The names of the places in the types of a format."""
    places: dict[str, list[str]] = SDKS["places"]
    return places.get(format) or [one.name for one in ROWS if one.format == format]


def test_each_place_is_one_of_the_types() -> None:
    """Where this fails, the SDKs have another place for it now: mend ``tests/request_matrix/places.py``."""
    formats = {name for places in MEANINGS.values() for name in places}
    names = {format: names_of(format) for format in formats}
    stale = [
        (meaning, format, pattern)
        for meaning, places in MEANINGS.items()
        for format, pattern in places.items()
        if pattern is not TEXT and not any(re.search(pattern, name) for name in names[format])
    ]
    assert stale == []


@pytest.mark.sweep
def test_the_rows_are_what_the_types_of_the_sdks_allow() -> None:
    """Where this fails, read what is new: ``python scripts/request_words.py``, then the same with ``--write``."""
    for package, wanted in SDKS["versions"].items():
        try:
            found = version(package)
        except PackageNotFoundError:
            pytest.skip(f"{package} is not installed: pip install -c dev.lock -e '.[dev,sdks]'")
        if found != wanted:
            pytest.skip(f"{package} {found} is installed, and the rows are of {wanted}")
    command = [sys.executable, "-W", "ignore", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_locked_versions_are_those_of_the_rows() -> None:
    locked = dict(
        re.findall(r"^([\w-]+)==(\S+)", (ROOT / "dev.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {name: locked.get(name) for name in SDKS["versions"]} == SDKS["versions"]


# Planted losses: each changes what is really sent, and the judge says so.

Change = Callable[[Sent], Sent | Refused]


def planted(change: Change, only: Callable[[Mapping[str, Any]], bool] = lambda body: True) -> Send:
    """Send as the library does, and change what it sends of the requests *only*."""

    def sending(body: Mapping[str, Any], format: str, target: str) -> Sent | Refused:
        sent = send(body, format, target)
        return change(sent) if isinstance(sent, Sent) and only(body) else sent

    return sending


def without(*fields: str, name: str = "") -> Change:
    """Leave out fields, and name one of them if there is a *name*."""

    def change(sent: Sent) -> Sent:
        losses = (Loss(name, "has nothing for it", refuses=True),) if name else ()
        body = {key: one for key, one in sent.body.items() if key not in fields}
        return Sent(body, (*sent.losses, *losses))

    return change


def mapped(change: Callable[[Any], Any]) -> Change:
    """Change each message."""
    return lambda sent: Sent(
        {**sent.body, "messages": [change(one) for one in sent.body["messages"]]}, sent.losses
    )


def with_field(**more: Any) -> Change:
    return lambda sent: Sent({**sent.body, **more}, sent.losses)


def has(*fields: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda body: bool(body.keys() & set(fields))


def has_marker(body: Mapping[str, Any]) -> bool:
    return "zq" in json.dumps(body)


def without_marks(value: Any) -> Any:
    """Return *value* without the cache points of Converse."""
    if isinstance(value, dict):
        return {key: without_marks(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_marks(one) for one in value if not (isinstance(one, dict) and "cachePoint" in one)]
    return value


def crash(_: Mapping[str, Any], __: str, ___: str) -> Refused:
    return Refused("KeyError: 'x'", is_typed=False)


TURN = "messages[][user].content[str]"
MARK = "messages[][user].content[list][][text].cache_control"
PLANTED = {
    "an option vanishes": (
        ("chat", "temperature", "cohere"),
        planted(without("temperature"), has("temperature")),
        Verdict.VANISHED,
    ),
    "an option is said to have no place": (
        ("chat", "temperature", "cohere"),
        planted(without("temperature", name="temperature"), has("temperature")),
        Verdict.FALSE_NO_PLACE,
    ),
    "a sentence is invented": (
        ("chat", TURN, "mistral"),
        planted(
            lambda sent: Sent(
                {
                    **sent.body,
                    "messages": [*sent.body["messages"], {"role": "user", "content": "Please do go on."}],
                },
                sent.losses,
            ),
            has_marker,
        ),
        Verdict.INVENTED,
    ),
    "a turn is emptied": (
        ("chat", TURN, "mistral"),
        planted(mapped(lambda turn: {**turn, "content": ""}), has_marker),
        Verdict.EMPTIED,
    ),
    "the system's words become the user's": (
        ("chat", "messages[][system].content[str]", "mistral"),
        planted(mapped(lambda turn: {**turn, "role": "user"})),
        Verdict.CHANGED,
    ),
    "a field is sent that the server refuses": (
        ("chat", "temperature", "mistral"),
        planted(with_field(verbosity="low"), has("temperature")),
        Verdict.MALFORMED,
    ),
    "a cache mark is gone unnamed before a server that takes it": (
        ("messages", MARK, "bedrock"),
        planted(lambda sent: Sent(without_marks(sent.body), sent.losses)),
        Verdict.VANISHED,
    ),
    "a hint is gone unnamed before a server that has no place for it": (
        ("chat", "prompt_cache_key", "anthropic"),
        planted(lambda sent: Sent(sent.body, ())),
        Verdict.UNNAMED,
    ),
    "state is dropped by name": (
        ("responses", "conversation[str]", "anthropic"),
        lambda body, format, target: Sent(
            {
                "model": "m",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "Say hello to everyone."}],
            },
            (Loss("conversation", "has nothing for it", refuses=True),) if "conversation" in body else (),
        ),
        Verdict.STATE_DROPPED,
    ),
    "the same format loses a field": (
        ("chat", "temperature", "openai"),
        planted(without("temperature")),
        Verdict.NOT_SAME,
    ),
    "it crashes": (("chat", "temperature", "mistral"), crash, Verdict.CRASHED),
}
"""A row and a target, what is done to it, and what the judge must say."""


@pytest.mark.untraced
@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_loss_is_found(case: str) -> None:
    (format, name, target), sending, wanted = PLANTED[case]
    assert finding(row(format, name), target, sending).verdict is wanted


RIGHT = {
    ("chat", "temperature", "cohere"): Verdict.ARRIVES,
    ("chat", TURN, "mistral"): Verdict.ARRIVES,
    ("chat", "messages[][system].content[str]", "mistral"): Verdict.ARRIVES,
    ("chat", "temperature", "mistral"): Verdict.ARRIVES,
    ("messages", MARK, "bedrock"): Verdict.ARRIVES,
    ("responses", "conversation[str]", "anthropic"): Verdict.REFUSED,
    ("chat", "prompt_cache_key", "anthropic"): Verdict.DROPPED,
    ("chat", "temperature", "openai"): Verdict.SAME,
    ("chat", "temperature", "ollama"): Verdict.ARRIVES,
    ("chat", "seed", "anthropic"): Verdict.DROPPED,
}


@pytest.mark.untraced
@pytest.mark.parametrize("case", RIGHT, ids=" ".join)
def test_what_is_right_without_it_is_found_right(case: tuple[str, str, str]) -> None:
    format, name, target = case
    assert finding(row(format, name), target).verdict is RIGHT[case]


def test_a_sentence_that_is_named_is_not_invented() -> None:
    turn = {"role": "user", "content": "Please do go on."}

    def adding(*named: str) -> Send:
        def change(sent: Sent) -> Sent:
            return Sent({**sent.body, "messages": [*sent.body["messages"], turn]}, sent.losses, named)

        return planted(change, has_marker)

    verdicts = [
        finding(row("chat", TURN), "mistral", adding(*named)).verdict for named in ([], ["Please do go on."])
    ]
    assert verdicts == [Verdict.INVENTED, Verdict.ARRIVES]


def test_what_is_told_in_words_is_not_in_its_place() -> None:
    """A search result has a place in Converse, and none in Chat Completions, where words are its place."""
    result = row("messages", "messages[][user].content[list][][search_result]")
    words = " ".join(str(value) for _, value in leaves(result.body["messages"][0]["content"][0]))

    def telling(format: str) -> Send:
        turn: dict[str, Any] = {"role": "user", "content": words}
        if format == "bedrock":
            turn["content"] = [{"text": words}]
        return planted(lambda sent: Sent({**sent.body, "messages": [turn]}, ()), has_marker)

    told, in_place = (finding(result, target, telling(target)) for target in ("bedrock", "mistral"))
    assert (told.verdict, in_place.verdict) == (Verdict.TOLD, Verdict.TOLD)
    assert [arrived_in_place(one) for one in (told, in_place)] == [False, True]
    assert [fault for fault, _ in faults([told, in_place])] == [NOT_IN_PLACE]


def test_a_hint_that_is_an_error_by_default_is_a_fault() -> None:
    one = row("messages", MARK)
    naming = planted(
        lambda sent: Sent(sent.body, (Loss("cache_control", "has nothing for it", refuses=True),))
    )
    assert HINT_REFUSED in [fault for fault, _ in faults([finding(one, "bedrock", naming)])]


def test_more_wrong_cells_than_are_allowed_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is too much, in the sample as in the whole; as many as are allowed are not shown."""
    file = tmp_path / "allowed.json"
    monkeypatch.setattr("request_matrix.limits.ALLOWED", file)
    (format, name, target), sending, _ = PLANTED["an option vanishes"]
    found = [finding(row(format, name), target, sending)]
    file.write_text(json.dumps(limits_of(found)))
    assert failures(found, "all") == []
    file.write_text(json.dumps(limits_of([])))
    assert re.match(
        r"chat: vanished 1 times, and 0 are allowed, as temperature to cohere", failures(found, "all")[0]
    )


def test_limits_only_fall() -> None:
    first = {"all": {"vanished": {"chat": 3, "gemini": 1}}, "sample": {}}
    second = {"all": {"vanished": {"chat": 2, "gemini": 4}, "emptied": {"chat": 1}}, "sample": {}}
    found = lower(first, second)
    assert found["all"]["vanished"] == {"chat": 2, "gemini": 1}
    assert found["all"]["emptied"] == found["sample"]["vanished"] == {}
