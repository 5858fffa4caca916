"""Recordings of the four wires that the kit's checks were not written for, and statements about each."""

from __future__ import annotations

from typing import Any

import attrs
import orjson

from planted import netstrings, sealed
from planted.recordings import CALL, TWO, Recording, answered, failed, lines, record, sse

SECONDS = 1767260700


def asked(recordings: list[Recording], model: str, limit: str) -> list[Recording]:
    """The recordings with their requests. *limit* is the provider's name for the largest number of tokens."""
    found = []
    for one in recordings:
        request: dict[str, Any] = {"model": model, limit: 5 if one.says.get("finish") == "length" else 64}
        if one.says.get("calls"):
            request["tools"] = [{"name": CALL["name"], "schema": {"port": "string"}}]
        found.append(attrs.evolve(one, capture=attrs.evolve(one.capture, request=orjson.dumps(request))))
    return found


# ------------------------------------------------------------------------------------- netstrings

BEGIN = ["b", "wx-", "salt-3", SECONDS * 1000, "eu"]
SUM = ["u", 9, 6, 5, 2]
SALT = {"model": "salt-3"}


def strung(case: str, *rows: list[Any], both: bool = True, **says: Any) -> list[Recording]:
    id = f"wx-{case}"
    rows, says = tuple(["b", id, *row[2:]] if row is BEGIN else row for row in rows), {**says, "id": id}
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
            **answered("stop", "e", **SALT, text="Left", choices=TWO)),
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

OPEN = {"parley": "par-", "engine": "oak-2", "opened": "2026-01-01T11:45:00+02:00"}
BILL = {"bill": {"heard": 3, "remembered": 6, "uttered": 5, "pondered": 2}}
OAK = {"model": "oak-2"}


def lanes(
    case: str, *lanes: dict[str, Any], cuts: int = 1, both: bool = True, **says: Any
) -> list[Recording]:
    """A body of *lanes*, and the stream that says the same, with each text in so many pieces."""
    opened = {**OPEN, "parley": f"par-{case}"}
    says = {**says, "id": opened["parley"]}
    events: list[tuple[str, Any]] = [("open", opened)]
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
    body = {**opened, "lanes": [{"lane": number, **lane} for number, lane in enumerate(lanes)], **BILL}
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
           **answered("stop", "natural", **OAK, text="Left", choices=TWO)),
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

JOB = {"uuid": "job-", "weights": "fern-7b", "queued": SECONDS + 0.25, "zone": "N"}
METER = {"taken": 9, "warm": 6, "given": 5, "mused": 2}
FERN = {"model": "fern-7b", "created": "2026-01-01T09:45:00.250000Z"}


def grown(case: str, *steps: Any, both: bool = True, **says: Any) -> list[Recording]:
    """The lines of a stream, of which the last is the body. Each step is a draft, or a list of drafts."""
    events, job = [], {**JOB, "uuid": f"job-{case}"}
    says = {**says, "id": job["uuid"]}
    for number, step in enumerate(steps):
        drafts = step if isinstance(step, list) else [step]
        event: dict[str, Any] = {
            "job": job,
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
    *grown("call", {"answer": "", "phase": "running"}, {"answer": "", "tools": [GIVEN], "phase": "running"},
           {"answer": "", "tools": [GIVEN], "phase": "needs_tools"},
           **answered("tool_calls", "needs_tools", **FERN, calls=[{"id": "c-81", "name": "tides", "arguments": GIVEN["input"]}])),
    *grown("two", [{"answer": "Le", "phase": "running"}, {"answer": "Ri", "phase": "running"}],
           [{"answer": "Left", "phase": "finished"}, {"answer": "Right", "phase": "stopped_at_limit"}],
           **answered("stop", "finished", **FERN, text="Left", choices=TWO)),
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

HEAD = ("head", {"session": "ses-", "brain": "elm-1", "born": SECONDS * 1_000_000})
USE = ("use", {"fresh": 2, "warm": 4, "stored": 3, "spoken": 3, "mulled": 2})
ELM = {"model": "elm-1",
       "usage": {"prompt_tokens": 9, "cached_tokens": 4, "cache_write_tokens": 3, "completion_tokens": 5, "reasoning_tokens": 2}}  # fmt: skip


def recorded(case: str, *events: tuple[str, Any], **says: Any) -> Recording:
    id = f"ses-{case}"
    body = [("head", {**HEAD[1], "session": id}) if event is HEAD else event for event in events]
    framed = b"".join(sealed.write(orjson.dumps(data), name) for name, data in body)
    return record(case, framed, stream=True, **says, id=id)


BITS = [{"t": "Hel", "p": -0.125}, {"t": "lo", "p": -0.0625}]
SEALED = [
    recorded("talk", HEAD, ("reason", {"b": 0, "v": "Let me See. "}), ("text", {"b": 0, "v": "Hello", "bits": BITS}),
                           ("text", {"b": 0, "v": " There"}), USE, ("end", {"b": 0, "stop": 0}),
           **answered("stop", "0", **ELM, text="Hello There", reasoning="Let me See. ")),
    recorded("halted", HEAD, ("text", {"b": 0, "v": "One two "}), USE, ("end", {"b": 0, "stop": 0, "word": "three"}),
           **answered("stop", "0", **ELM, text="One two ")),
    recorded("long", HEAD, ("text", {"b": 0, "v": "One two"}), USE, ("end", {"b": 0, "stop": 1}),
           **answered("length", "1", **ELM, text="One two", complete=False)),
    recorded("call", HEAD, ("call", {"b": 0, "i": 0, "k": "c-81", "f": "tides", "j": '{"port": '}),
                           ("call", {"b": 0, "i": 0, "j": '"Brest"}'}), USE, ("end", {"b": 0, "stop": 2}),
           **answered("tool_calls", "2", **ELM, calls=[CALL])),
    recorded("two", HEAD, ("text", {"b": 0, "v": "Left"}), ("text", {"b": 1, "v": "Right"}), USE,
                          ("end", {"b": 0, "stop": 0}), ("end", {"b": 1, "stop": 1}),
           **answered("stop", "0", **ELM, text="Left", choices=TWO)),
    recorded("denied", HEAD, ("no", {"b": 0, "v": "I will not say."}), USE, ("end", {"b": 0, "stop": 0}),
           **answered("stop", "0", **ELM, refusal="I will not say.", complete=False)),
    recorded("barred", HEAD, ("text", {"b": 0, "v": "I "}), USE, ("end", {"b": 0, "stop": 3}),
           **answered("content_filter", "3", **ELM, text="I ")),
    recorded("lost", HEAD, ("text", {"b": 0, "v": "Half"}), ("fail", {"failure": 5000, "because": "a worker went away"}),
           **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps({"failure": 4290, "because": "slow down, please", "wait_ms": 12000}), 429, stream=False,
           **failed("rate_limit", retryable=True)),
    record("nokey", orjson.dumps({"failure": 4010, "because": "that key is unknown"}), 401, stream=False,
           **failed("authentication", retryable=False)),
    record("wrong", orjson.dumps({"failure": 4000, "because": "no such option: temprature"}), 400, stream=False,
           **failed("invalid_request", retryable=False)),
]  # fmt: skip

MORE_RECORDINGS = {
    "netstrings": asked(NETSTRINGS, "salt-3", "max_tokens"),
    "lanes": asked(LANES, "oak-2", "max_output_tokens"),
    "grown": asked(GROWN, "fern-7b", "num_predict"),
    "sealed": asked(SEALED, "elm-1", "maxTokens"),
}

# ---------------------------------------------------------------------------------------- patches

MOSS = {"model": "moss-4"}


def patched(case: str, *choices: dict[str, Any], both: bool = True, **says: Any) -> list[Recording]:
    """A body of *choices*, and the patches that make it, with each text in two pieces."""
    id = f"pt-{case}7"
    meta = {"id": id, "model": "moss-4", "created": SECONDS, "zone": "eu-2"}
    usage = {"input": 9, "cached": 6, "output": 5, "reasoning": 2, "total": 14}
    events: list[Any] = [{"path": "/meta", "value": meta}]
    for number, choice in enumerate(choices):
        place = f"/choices/{number}"
        for key in ("thought", "refusal", "text"):
            text = choice.get(key, "")
            half = len(text) // 2
            pieces = [piece for piece in (text[:half], text[half:]) if piece]
            events += [{"path": f"{place}/{key}", "append": piece} for piece in pieces]
        for slot, call in enumerate(choice.get("calls", ())):
            events.append(
                {"path": f"{place}/calls/{slot}", "value": {"id": call["id"], "name": call["name"]}}
            )
            events.append({"path": f"{place}/calls/{slot}/arguments", "append": call["arguments"]})
    events.append({"path": "/usage", "value": usage})
    for number, choice in enumerate(choices):
        more = {"stopped_by": choice["stopped_by"]} if "stopped_by" in choice else {}
        events.append({"path": f"/choices/{number}/end", "value": choice["end"], **more})
    whole = {"meta": meta, "choices": [{"number": n, **one} for n, one in enumerate(choices)], "usage": usage}
    says = {**says, "id": id}
    streamed = record(case, lines(*events), stream=True, **says)
    return [record(case, orjson.dumps(whole), stream=False, **says), streamed] if both else [streamed]


PATCHES = [
    *patched("talk", {"thought": "Let me See. ", "text": "Hello There", "end": "complete"},
             **answered("stop", "complete", **MOSS, text="Hello There", reasoning="Let me See. ")),
    *patched("halted", {"text": "One two ", "end": "complete", "stopped_by": "three"},
             **answered("stop", "complete", **MOSS, text="One two ")),
    *patched("long", {"text": "One two", "end": "budget"},
             **answered("length", "budget", **MOSS, text="One two", complete=False)),
    *patched("call", {"calls": [CALL], "end": "calls"}, **answered("tool_calls", "calls", **MOSS, calls=[CALL])),
    *patched("two", {"text": "Left", "end": "complete"}, {"text": "Right", "end": "budget"},
             **answered("stop", "complete", **MOSS, text="Left", choices=TWO)),
    *patched("denied", {"refusal": "I will not say.", "end": "complete"},
             **answered("stop", "complete", **MOSS, refusal="I will not say.", complete=False)),
    *patched("barred", {"text": "I ", "end": "policy"}, **answered("content_filter", "policy", **MOSS, text="I ")),
    record("lost", lines({"path": "/choices/0/text", "append": "Half"},
                         {"path": "/error", "value": {"type": "overloaded", "message": "a worker went away"}}), stream=True,
           **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps({"error": {"type": "throttled", "message": "slow down, please", "retry_after": 12}}), 429,
           stream=False, **failed("rate_limit", retryable=True)),
    record("nokey", orjson.dumps({"error": {"type": "unauthorized", "message": "that key is unknown"}}), 401, stream=False,
           **failed("authentication", retryable=False)),
    record("wrong", orjson.dumps({"error": {"type": "bad_input", "message": "no such option: temprature"}}), 400, stream=False,
           **failed("invalid_request", retryable=False)),
]  # fmt: skip

# ------------------------------------------------------------------------------------------ coded

YEW = {"model": "yew-9"}


def coded(case: str, *items: tuple[int, dict[str, Any]], both: bool = True, **says: Any) -> list[Recording]:
    id = f"rq-{case}5"
    first = {"k": 0, "d": {"rq": id, "mdl": "yew-9", "at": "2026-01-01T09:45:00+00:00", "dc": "fra"}}
    *others, end = [{"k": kind, "d": data} for kind, data in items]
    count = {"k": 5, "d": {"i": 3, "w": 6, "o": 5, "r": 2}}
    events = [first, *others, end] if end["k"] == 9 else [first, *others, count, end]
    says = {**says, "id": id}
    streamed = record(case, lines(*events), stream=True, **says)
    return [record(case, orjson.dumps(events), stream=False, **says), streamed] if both else [streamed]


CODED = [
    *coded("talk", (2, {"n": 0, "t": "Let me See. "}), (1, {"n": 0, "t": "Hello", "p": [{"w": "Hel", "l": -0.125}, {"w": "lo", "l": -0.0625}]}),
           (1, {"n": 0, "t": " There"}), (6, {"n": 0, "r": "A"}),
           **answered("stop", "A", **YEW, text="Hello There", reasoning="Let me See. ")),
    *coded("halted", (1, {"n": 0, "t": "One two "}), (6, {"n": 0, "r": "A", "by": "three"}),
           **answered("stop", "A", **YEW, text="One two ")),
    *coded("long", (1, {"n": 0, "t": "One two"}), (6, {"n": 0, "r": "B"}),
           **answered("length", "B", **YEW, text="One two", complete=False)),
    *coded("call", (4, {"n": 0, "s": 0, "c": "c-81", "f": "tides", "a": {"port": "Brest"}}), (6, {"n": 0, "r": "C"}),
           **answered("tool_calls", "C", **YEW, calls=[{"id": "c-81", "name": "tides", "arguments": {"port": "Brest"}}])),
    *coded("denied", (3, {"n": 0, "t": "I will not say."}), (6, {"n": 0, "r": "A"}),
           **answered("stop", "A", **YEW, refusal="I will not say.", complete=False)),
    *coded("barred", (1, {"n": 0, "t": "I "}), (6, {"n": 0, "r": "D"}),
           **answered("content_filter", "D", **YEW, text="I ")),
    *coded("lost", (1, {"n": 0, "t": "Half"}), (9, {"code": 102, "text": "a worker went away"}), both=False,
           **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps({"k": 9, "d": {"code": 101, "text": "slow down, please", "wait": 12}}), 429, stream=False,
           **failed("rate_limit", retryable=True)),
    record("nokey", orjson.dumps({"k": 9, "d": {"code": 103, "text": "that key is unknown"}}), 401, stream=False,
           **failed("authentication", retryable=False)),
]  # fmt: skip

MORE_RECORDINGS["patches"] = asked(PATCHES, "moss-4", "max_tokens")
MORE_RECORDINGS["coded"] = asked(CODED, "yew-9", "max_new_tokens")
