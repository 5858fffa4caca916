"""Recordings of the four invented wires, as any author has them, and statements about each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

from crosswalk.testing import Capture
from planted import binary


@attrs.frozen
class Recording:
    """A capture and the statements about it.

    Attributes:
        capture: the bytes that a server sent.
        says: the statements, by their names.
    """

    capture: Capture
    says: dict[str, Any]


def record(case: str, body: bytes, status: int = 200, *, stream: bool, **says: Any) -> Recording:
    name = f"{case}_stream" if stream else case
    return Recording(Capture(name, Path(name), body, status=status, stream=stream, pair=case), says)


def lines(*events: Any) -> bytes:
    return b"".join(orjson.dumps(event) + b"\n" for event in events)


def sse(*events: Any) -> bytes:
    """Server-sent events: each a pair of name and data, or data alone."""
    texts = []
    for event in events:
        name, data = event if isinstance(event, tuple) else (None, event)
        texts.append(
            (b"" if name is None else b"event: %s\n" % name.encode()) + b"data: %s\n\n" % orjson.dumps(data)
        )
    return b"".join(texts)


def frames(*events: tuple[str, Any]) -> bytes:
    return b"".join(binary.write(orjson.dumps(data), name) for name, data in events)


CREATED = "2026-01-01T09:45:00Z"
SECONDS = 1767260700
USAGE = {"prompt_tokens": 9, "cached_tokens": 6, "completion_tokens": 5, "reasoning_tokens": 2}
CALL = {"id": "c-81", "name": "tides", "arguments": '{"port": "Brest"}'}
NO_ARGUMENTS = {"id": "c-82", "name": "now", "arguments": ""}


def answered(finish: str, raw: str, **more: Any) -> dict[str, Any]:
    """The statements about an answer. Each that *more* does not make says that there is nothing."""
    nothing: dict[str, Any] = {"text": None, "reasoning": None, "refusal": None, "calls": [], "error": None}
    nothing |= {"choices": None, "media": None, "duration": None}
    return {**nothing, "finish": finish, "raw_finish": raw, "created": CREATED, "usage": USAGE, **more}


TWO = [{"text": "Left", "finish": "stop"}, {"text": "Right", "finish": "length"}]
"""The choices of each recording of two."""


def failed(kind: str, *, retryable: bool, **more: Any) -> dict[str, Any]:
    return {"finish": "error", "error": kind, "retryable": retryable, "complete": False, **more}


# ------------------------------------------------------------------------------------------- rows

HI = ["hi", "run-4f", "brine-2", "2026-01-01T11:45:00+02:00"]
SUM = ["sum", 3, 6, 3, 2]
ROWS_ID = {"id": "run-4f", "model": "brine-2"}


def rows(case: str, *rows: Sequence[Any], both: bool = True, **says: Any) -> list[Recording]:
    streamed = record(case, lines(*({"row": row} for row in rows)), stream=True, **says)
    return [record(case, lines({"rows": rows}), stream=False, **says), streamed] if both else [streamed]


ROWS = [
    *rows("talk", HI, ["think", "Let me See. "], ["say", "Hello", -0.125], ["say", " There", -0.4375], SUM, ["bye", "fin"],
          **answered("stop", "fin", **ROWS_ID, text="Hello There", reasoning="Let me See. ")),
    *rows("long", HI, ["say", "One two", None], SUM, ["bye", "full"],
          **answered("length", "full", **ROWS_ID, text="One two", complete=False)),
    *rows("call", HI, ["call", 0, "c-81", "tides", '{"port": '], ["more", 0, '"Brest"}'], SUM, ["bye", "act"],
          **answered("tool_calls", "act", **ROWS_ID, calls=[CALL])),
    *rows("bare", HI, ["call", 0, "c-82", "now", ""], SUM, ["bye", "act"],
          **answered("tool_calls", "act", **ROWS_ID, calls=[NO_ARGUMENTS])),
    *rows("denied", HI, ["deny", "I will not say."], SUM, ["bye", "fin"],
          **answered("stop", "fin", **ROWS_ID, refusal="I will not say.", complete=False)),
    *rows("lost", HI, ["say", "Half", -0.5], ["fail", 8, "worker lost"], both=False,
          **failed("server", retryable=True, text="Half")),
    record("busy", lines({"row": ["fail", 7, "slow down"]}), 429, stream=False, **failed("rate_limit", retryable=True)),
    record("wide", lines({"row": ["fail", 9, "4,000 tokens are too many"]}), 400, stream=False,
           **failed("context_overflow", retryable=False)),
]  # fmt: skip

# ------------------------------------------------------------------------------------- look-alike

KELP_USAGE = {"prompt_tokens": 3, "kelp_cache_hits": 6, "completion_tokens": 5, "kelp_thought_tokens": 2}
HEAD = {
    "id": "kelp-7c",
    "object": "chat.completion",
    "created": SECONDS * 1000,
    "model": "kelp-m",
    "kelp_region": "eu",
}
KELP_ID = {"id": "kelp-7c", "model": "kelp-m"}
TOOL = {"id": "c-81", "type": "function", "function": {"name": "tides", "arguments": '{"port": "Brest"}'}}
OK = {"code": 0, "message": "success"}


def body(message: dict[str, Any], why: str, **choice: Any) -> bytes:
    choices = [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": why, **choice}]
    return orjson.dumps({**HEAD, "choices": choices, "usage": KELP_USAGE, "kelp_resp": OK})


def chunks(*parts: dict[str, Any], why: str) -> bytes:
    head = {**HEAD, "object": "chat.completion.chunk"}
    events = [{**head, "choices": [{"index": 0, "delta": part.get("delta", part), "finish_reason": None, **part.get("choice", {})}]}
              for part in parts]  # fmt: skip
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": why}]}
    return sse(*events, end, {**head, "choices": [], "usage": KELP_USAGE}) + b"data: [DONE]\n\n"


KELP_TALK = answered("stop", "eos", **KELP_ID, text="Hello There", reasoning="Let me See.")
KELP = [
    record("told", body({"content": "Hello There", "reasoning_details": [{"text": "Let me See."}]}, "eos", lp=-0.3125), stream=False,
           **KELP_TALK),
    record("talk", chunks({"role": "assistant", "reasoning_details": [{"text": "Let me See."}]},
                          {"delta": {"content": "Hello"}, "choice": {"lp": -0.125}},
                          {"delta": {"content": " There"}, "choice": {"lp": -0.4375}}, why="eos"), stream=True,
           **KELP_TALK),
    record("long", body({"content": "One two"}, "window"), stream=False,
           **answered("length", "window", **KELP_ID, text="One two", complete=False)),
    record("call", body({"content": None, "tool_calls": [TOOL]}, "functions"), stream=False,
           **answered("tool_calls", "functions", **KELP_ID, calls=[CALL])),
    record("call", chunks({"tool_calls": [{**TOOL, "index": 0, "function": {"name": "tides", "arguments": '{"port": '}}]},
                          {"tool_calls": [{"index": 0, "function": {"arguments": '"Brest"}'}}]}, why="functions"), stream=True,
           **answered("tool_calls", "functions", **KELP_ID, calls=[CALL])),
    record("denied", body({"content": None, "denial": "I will not say."}, "eos"), stream=False,
           **answered("stop", "eos", **KELP_ID, refusal="I will not say.", complete=False)),
    record("barred", body({"content": "I "}, "blocked"), stream=False,
           **answered("content_filter", "blocked", **KELP_ID, text="I ")),
    record("spent", orjson.dumps({**HEAD, "choices": [], "kelp_resp": {"code": 1002, "message": "slow down"}}), stream=False,
           **failed("rate_limit", retryable=True)),
    record("nokey", orjson.dumps({"kelp_resp": {"code": 1004, "message": "login fail"}}), 401, stream=False,
           **failed("authentication", retryable=False)),
    record("down", orjson.dumps({"kelp_resp": {"code": 1000, "message": "unexpected"}}), 500, stream=False,
           **failed("server", retryable=True)),
]  # fmt: skip

# -------------------------------------------------------------------------------------- named SSE

RUN = {"id": "run-91", "model": "reed-1", "at_ms": SECONDS * 1000}
TALLY = {"read": 9, "reused": 6, "made": 5, "mulled": 2}
NAMED_ID = {"id": "run-91", "model": "reed-1"}


def named(
    case: str, *parts: tuple[str, dict[str, Any]], why: str, both: bool = True, **says: Any
) -> list[Recording]:
    streamed = sse(
        ("start", {"run": RUN, "zone": "N"}), *parts, ("tally", {"tally": TALLY}), ("finish", {"why": why})
    )
    listed = [{"kind": kind, **part} for kind, part in parts]
    whole = orjson.dumps({"run": RUN, "zone": "N", "parts": listed, "tally": TALLY, "why": why})
    found = [record(case, whole, stream=False, **says), record(case, streamed, stream=True, **says)]
    return found if both else found[1:]


NAMED = [
    *named("talk", ("think", {"text": "Let me See. "}), ("text", {"text": "Hello", "lp": -0.125}),
           ("text", {"text": " There", "lp": -0.4375}), why="done",
           **answered("stop", "done", **NAMED_ID, text="Hello There", reasoning="Let me See. ")),
    *named("long", ("text", {"text": "One two"}), why="cap",
           **answered("length", "cap", **NAMED_ID, text="One two", complete=False)),
    *named("call", ("tool", {"slot": 0, "id": "c-81", "name": "tides", "input": '{"port": '}),
           ("tool", {"slot": 0, "input": '"Brest"}'}), why="tools", both=False,
           **answered("tool_calls", "tools", **NAMED_ID, calls=[CALL])),
    *named("whole", ("tool", {"slot": 0, "id": "c-81", "name": "tides", "input": {"port": "Brest"}}), why="tools",
           **answered("tool_calls", "tools", **NAMED_ID, calls=[{**CALL, "arguments": {"port": "Brest"}}])),
    *named("denied", ("deny", {"text": "I will not say."}), why="done",
           **answered("stop", "done", **NAMED_ID, refusal="I will not say.", complete=False)),
    *named("barred", ("text", {"text": "I "}), why="shield",
           **answered("content_filter", "shield", **NAMED_ID, text="I ")),
    record("lost", sse(("start", {"run": RUN}), ("text", {"text": "Half", "lp": -0.5}),
                       ("fault", {"fault": "worker_lost", "why": "a worker went away"})), stream=True,
           **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps({"fault": "too_fast", "why": "slow down"}), 429, stream=False,
           **failed("rate_limit", retryable=True)),
    record("nokey", orjson.dumps({"fault": "no_key", "why": "unknown"}), 401, stream=False,
           **failed("authentication", retryable=False)),
]  # fmt: skip

# ----------------------------------------------------------------------------------- binary frames

OPEN = ("open", {"rid": "ray-3", "engine": "ray-m", "t": SECONDS})
COUNTED = ("tally", {"tally": {"in": 9, "in_hit": 6, "out": 5, "out_mused": 2}})
RAY_ID = {"id": "ray-3", "model": "ray-m"}

RAY = [
    record("talk", frames(OPEN, ("muse", {"s": "Let me See. "}), ("text", {"s": "Hello", "lp": -0.125}), ("ping", {}),
                          ("text", {"s": " There", "lp": -0.4375}), COUNTED, ("close", {"why": "E"})), stream=True,
           **answered("stop", "E", **RAY_ID, text="Hello There", reasoning="Let me See. ")),
    record("long", frames(OPEN, ("text", {"s": "One two"}), COUNTED, ("close", {"why": "L"})), stream=True,
           **answered("length", "L", **RAY_ID, text="One two", complete=False)),
    record("call", frames(OPEN, ("call", {"n": 0, "cid": "c-81", "fn": "tides", "a": '{"port": '}), ("call", {"n": 0, "a": '"Brest"}'}),
                          COUNTED, ("close", {"why": "C"})), stream=True,
           **answered("tool_calls", "C", **RAY_ID, calls=[CALL])),
    record("bare", frames(OPEN, ("call", {"n": 0, "cid": "c-82", "fn": "now", "a": ""}), COUNTED, ("close", {"why": "C"})), stream=True,
           **answered("tool_calls", "C", **RAY_ID, calls=[NO_ARGUMENTS])),
    record("lost", frames(OPEN, ("text", {"s": "Half", "lp": -0.5}), ("fault", {"code": 500, "why": "worker lost"})), stream=True,
           **failed("server", retryable=True, text="Half")),
    record("busy", orjson.dumps({"code": 429, "why": "slow down"}), 429, stream=False, **failed("rate_limit", retryable=True)),
]  # fmt: skip

RECORDINGS = {"rows": ROWS, "lookalike": KELP, "named": NAMED, "binary": RAY}
