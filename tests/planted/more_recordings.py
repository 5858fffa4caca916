"""Recordings of the four wires that the kit's checks were not written for, and statements about each."""

from __future__ import annotations

from typing import Any

import orjson

from planted import netstrings, sealed
from planted.recordings import CALL, Recording, answered, failed, lines, record, sse

CREATED = "2026-01-01T09:45:00Z"
SECONDS = 1767260700

# ------------------------------------------------------------------------------------- netstrings

BEGIN = ["b", "wx-55", "salt-3", SECONDS * 1000, "eu"]
SUM = ["u", 9, 6, 5, 2]
SALT = {"id": "wx-55", "model": "salt-3"}


def strung(case: str, *rows: list[Any], both: bool = True, **says: Any) -> list[Recording]:
    body = b"".join(netstrings.write(orjson.dumps(row), None) for row in rows)
    streamed = record(case, body, stream=True, **says)
    return [record(case, orjson.dumps(rows), stream=False, **says), streamed] if both else [streamed]


NETSTRINGS = [
    *strung("talk", BEGIN, ["r", 0, "Let me See. "], ["w", 0, "Hello", -0.125], ["w", 0, " There", -0.4375], SUM, ["z", 0, "e", None],
            **answered("stop", "e", **SALT, text="Hello There", reasoning="Let me See. ")),
    *strung("halted", BEGIN, ["w", 0, "One two ", None], SUM, ["z", 0, "s", "three"],
            **answered("stop", "s", **SALT, text="One two ")),
    *strung("long", BEGIN, ["w", 0, "One two", None], SUM, ["z", 0, "m", None],
            **answered("length", "m", **SALT, text="One two", complete=False)),
    *strung("call", BEGIN, ["f", 0, 0, "c-81", "tides", '{"port": '], ["g", 0, 0, '"Brest"}'], SUM, ["z", 0, "f", None],
            **answered("tool_calls", "f", **SALT, calls=[CALL])),
    *strung("two", BEGIN, ["w", 0, "Left", -0.5], ["w", 1, "Right", -0.25], SUM, ["z", 0, "e", None], ["z", 1, "m", None],
            **answered("stop", "e", **SALT, text="Left")),
    *strung("denied", BEGIN, ["n", 0, "I will not say."], SUM, ["z", 0, "e", None],
            **answered("stop", "e", **SALT, refusal="I will not say.", complete=False)),
    *strung("barred", BEGIN, ["w", 0, "I ", None], SUM, ["z", 0, "x", None],
            **answered("content_filter", "x", **SALT, text="I ")),
    *strung("lost", BEGIN, ["w", 0, "Half", -0.5], ["!", 50, "the worker went away", None], both=False,
            **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps(["!", 29, "slow down, please", 12]), 429, stream=False, **failed("rate_limit", retryable=True)),
    record("barred_key", orjson.dumps(["!", 13, "this key may not", None]), 403, stream=False, **failed("permission", retryable=False)),
]  # fmt: skip

# ------------------------------------------------------------------------------------------ lanes

OPEN = {"parley": "par-8", "engine": "oak-2", "opened": "2026-01-01T11:45:00+02:00"}
BILL = {"bill": {"heard": 3, "remembered": 6, "uttered": 5, "pondered": 2}}
OAK = {"id": "par-8", "model": "oak-2"}


def lanes(
    case: str, *lanes: dict[str, Any], cuts: int = 1, both: bool = True, **says: Any
) -> list[Recording]:
    """A body of *lanes*, and the stream that says the same, with each text in so many pieces."""
    events: list[tuple[str, Any]] = [("open", OPEN)]
    for number, lane in enumerate(lanes):
        for kind in ("ponder", "decline", "utter"):
            text = lane.get(kind, "")
            size = -(-len(text) // cuts)
            for start in range(0, len(text), size or 1):
                more = {"odds": lane["odds"]} if kind == "utter" and "odds" in lane and start == 0 else {}
                events.append((kind, {"lane": number, "chars": text[start : start + size], **more}))
        if "quote" in lane:
            events.append(("quote", {"lane": number, "quote": lane["quote"]}))
        if "apply" in lane:
            events.append(("apply", {"lane": number, "apply": lane["apply"]}))
    events.append(("bill", BILL))
    ends = ({key: lane[key] for key in ("cause", "at_word") if key in lane} for lane in lanes)
    events += [("close", {"lane": number, **end}) for number, end in enumerate(ends)]
    streamed = record(case, sse(*events), stream=True, **says)
    body = {**OPEN, "lanes": [{"lane": number, **lane} for number, lane in enumerate(lanes)], **BILL}
    return [record(case, orjson.dumps(body), stream=False, **says), streamed] if both else [streamed]


ODDS = [{"bit": "Hel", "ln": -0.125, "rivals": [{"bit": "Hal", "ln": -2.25}]}, {"bit": "lo", "ln": -0.0625}]
LANES = [
    *lanes("talk", {"ponder": "Let me See. ", "utter": "Hello There", "odds": ODDS, "cause": "natural"}, cuts=2,
           **answered("stop", "natural", **OAK, text="Hello There", reasoning="Let me See. ")),
    *lanes("halted", {"utter": "One two ", "cause": "halted", "at_word": "three"},
           **answered("stop", "halted", **OAK, text="One two ")),
    *lanes("long", {"utter": "One two", "cause": "exhausted"},
           **answered("length", "exhausted", **OAK, text="One two", complete=False)),
    *lanes("call", {"apply": [{"slot": 0, "ref": "c-81", "skill": "tides", "with": '{"port": "Brest"}'}], "cause": "applied"},
           **answered("tool_calls", "applied", **OAK, calls=[CALL])),
    *lanes("two", {"utter": "Left", "cause": "natural"}, {"utter": "Right", "cause": "exhausted"},
           **answered("stop", "natural", **OAK, text="Left")),
    *lanes("denied", {"decline": "I will not say.", "cause": "natural"},
           **answered("stop", "natural", **OAK, refusal="I will not say.", complete=False)),
    *lanes("cited", {"utter": "High at six.", "quote": [{"href": "https://tides.example/brest"}], "cause": "natural"},
           **answered("stop", "natural", **OAK, text="High at six.")),
    *lanes("barred", {"utter": "I ", "cause": "censored"},
           **answered("content_filter", "censored", **OAK, text="I ")),
    record("lost", sse(("open", OPEN), ("utter", {"lane": 0, "chars": "Half"}),
                       ("trouble", {"trouble": "collapsed", "words": "a worker went away"})), stream=True,
           **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps({"trouble": "flooded", "words": "slow down, please", "wait_s": 12}), 429, stream=False,
           **failed("rate_limit", retryable=True)),
    record("nokey", orjson.dumps({"trouble": "stranger", "words": "who are you"}), 401, stream=False,
           **failed("authentication", retryable=False)),
    record("wide", orjson.dumps({"trouble": "overlong", "words": "4,000 tokens are too many"}), 400, stream=False,
           **failed("context_overflow", retryable=False)),
]  # fmt: skip

# ------------------------------------------------------------------------------------------ grown

JOB = {"uuid": "job-31", "weights": "fern-7b", "queued": SECONDS + 0.25, "zone": "N"}
METER = {"taken": 9, "warm": 6, "given": 5, "mused": 2}
FERN = {"id": "job-31", "model": "fern-7b", "created": "2026-01-01T09:45:00.250000Z"}


def grown(case: str, *steps: dict[str, Any], both: bool = True, **says: Any) -> list[Recording]:
    """The lines of a stream, of which the last is the body; each step is a draft, or a list of drafts."""
    events = []
    for number, step in enumerate(steps):
        drafts = step if isinstance(step, list) else [step]
        event: dict[str, Any] = {
            "job": JOB,
            "drafts": [{"number": n, **draft} for n, draft in enumerate(drafts)],
        }
        if number == len(steps) - 1:
            event["meter"] = METER
        events.append(event)
    streamed = record(case, lines(*events), stream=True, **says)
    return [record(case, lines(events[-1]), stream=False, **says), streamed] if both else [streamed]


GIVEN = {"key": "c-81", "tool": "tides", "input": {"port": "Brest", "high": True}}
GROWN = [
    *grown("talk", {"musing": "Let me", "answer": "", "phase": "running"},
           {"musing": "Let me See. ", "answer": "Hello", "phase": "running"},
           {"musing": "Let me See. ", "answer": "Hello There", "phase": "finished", "ended_by": None},
           **answered("stop", "finished", **FERN, text="Hello There", reasoning="Let me See. ")),
    *grown("halted", {"answer": "One ", "phase": "running"}, {"answer": "One two ", "phase": "finished", "ended_by": "three"},
           **answered("stop", "finished", **FERN, text="One two ")),
    *grown("long", {"answer": "One", "phase": "running"}, {"answer": "One two", "phase": "stopped_at_limit"},
           **answered("length", "stopped_at_limit", **FERN, text="One two", complete=False)),
    *grown("call", {"answer": "", "phase": "running"}, {"answer": "", "tools": [GIVEN], "phase": "needs_tools"},
           **answered("tool_calls", "needs_tools", **FERN, calls=[{"id": "c-81", "name": "tides", "arguments": GIVEN["input"]}])),
    *grown("two", [{"answer": "Le", "phase": "running"}, {"answer": "Ri", "phase": "running"}],
           [{"answer": "Left", "phase": "finished"}, {"answer": "Right", "phase": "stopped_at_limit"}],
           **answered("stop", "finished", **FERN, text="Left")),
    *grown("barred", {"answer": "I", "phase": "running"}, {"answer": "I ", "phase": "withheld"},
           **answered("content_filter", "withheld", **FERN, text="I ")),
    record("lost", lines({"job": JOB, "drafts": [{"number": 0, "answer": "Half", "phase": "running"}]},
                         {"job": JOB, "fault": {"code": "crash", "text": "the job was lost"}}), stream=True,
           **failed("server", retryable=True, text="Half")),
    record("busy", lines({"fault": {"code": "quota", "text": "slow down, please", "after": 12}}), 429, stream=False,
           **failed("rate_limit", retryable=True)),
    record("nokey", lines({"fault": {"code": "key", "text": "that key is unknown"}}), 401, stream=False,
           **failed("authentication", retryable=False)),
    record("nomodel", lines({"fault": {"code": "weights", "text": "there is no fern-8b"}}), 404, stream=False,
           **failed("model_unavailable", retryable=False)),
]  # fmt: skip

# ----------------------------------------------------------------------------------------- sealed

HEAD = ("head", {"session": "ses-12", "brain": "elm-1", "born": SECONDS * 1_000_000})
USE = ("use", {"fresh": 2, "warm": 4, "stored": 3, "spoken": 3, "mulled": 2})
ELM = {"id": "ses-12", "model": "elm-1",
       "usage": {"prompt_tokens": 9, "cached_tokens": 4, "cache_write_tokens": 3, "completion_tokens": 5, "reasoning_tokens": 2}}  # fmt: skip


def records(*events: tuple[str, Any]) -> bytes:
    return b"".join(sealed.write(orjson.dumps(data), name) for name, data in events)


BITS = [{"t": "Hel", "p": -0.125}, {"t": "lo", "p": -0.0625}]
SEALED = [
    record("talk", records(HEAD, ("reason", {"b": 0, "v": "Let me See. "}), ("text", {"b": 0, "v": "Hello", "bits": BITS}),
                           ("text", {"b": 0, "v": " There"}), USE, ("end", {"b": 0, "stop": 0})), stream=True,
           **answered("stop", "0", **ELM, text="Hello There", reasoning="Let me See. ")),
    record("halted", records(HEAD, ("text", {"b": 0, "v": "One two "}), USE, ("end", {"b": 0, "stop": 0, "word": "three"})), stream=True,
           **answered("stop", "0", **ELM, text="One two ")),
    record("long", records(HEAD, ("text", {"b": 0, "v": "One two"}), USE, ("end", {"b": 0, "stop": 1})), stream=True,
           **answered("length", "1", **ELM, text="One two", complete=False)),
    record("call", records(HEAD, ("call", {"b": 0, "i": 0, "k": "c-81", "f": "tides", "j": '{"port": '}),
                           ("call", {"b": 0, "i": 0, "j": '"Brest"}'}), USE, ("end", {"b": 0, "stop": 2})), stream=True,
           **answered("tool_calls", "2", **ELM, calls=[CALL])),
    record("two", records(HEAD, ("text", {"b": 0, "v": "Left"}), ("text", {"b": 1, "v": "Right"}), USE,
                          ("end", {"b": 0, "stop": 0}), ("end", {"b": 1, "stop": 1})), stream=True,
           **answered("stop", "0", **ELM, text="Left")),
    record("denied", records(HEAD, ("no", {"b": 0, "v": "I will not say."}), USE, ("end", {"b": 0, "stop": 0})), stream=True,
           **answered("stop", "0", **ELM, refusal="I will not say.", complete=False)),
    record("barred", records(HEAD, ("text", {"b": 0, "v": "I "}), USE, ("end", {"b": 0, "stop": 3})), stream=True,
           **answered("content_filter", "3", **ELM, text="I ")),
    record("lost", records(HEAD, ("text", {"b": 0, "v": "Half"}), ("fail", {"failure": 5000, "because": "a worker went away"})), stream=True,
           **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps({"failure": 4290, "because": "slow down, please", "wait_ms": 12000}), 429, stream=False,
           **failed("rate_limit", retryable=True)),
    record("nokey", orjson.dumps({"failure": 4010, "because": "that key is unknown"}), 401, stream=False,
           **failed("authentication", retryable=False)),
    record("wrong", orjson.dumps({"failure": 4000, "because": "no such option: temprature"}), 400, stream=False,
           **failed("invalid_request", retryable=False)),
]  # fmt: skip

MORE_RECORDINGS = {"netstrings": NETSTRINGS, "lanes": LANES, "grown": GROWN, "sealed": SEALED}
