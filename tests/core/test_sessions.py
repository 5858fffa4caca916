"""Session files of Claude Code and Codex, in which an answer takes several lines."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import ChatResponse, normalize
from crosswalk.records import BadRecord, Record, is_session, read_records, with_facts
from crosswalk.types import Provenance

USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 10,
    "cache_read_input_tokens": 100,
    "output_tokens": 1,
}


def claude(kind: str, second: int, message: Any = None, **more: Any) -> dict[str, Any]:
    """A line of Claude Code."""
    line = {"parentUuid": None, "sessionId": "s1", "cwd": "/home/kelp", "type": kind, "uuid": f"u{second}"}
    return {
        **line,
        "timestamp": f"2026-11-20T10:00:{second:02}.000Z",
        **({} if message is None else {"message": message}),
        **more,
    }


def part(second: int, block: Any, id: str = "msg_1", stop: str | None = None, **usage: int) -> dict[str, Any]:
    """A line with one block of an answer."""
    message = {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [block],
        "stop_reason": stop,
        "usage": {**USAGE, **usage},
    }
    return claude("assistant", second, message, requestId=f"req_{id}")


def failed(second: int, error: Any) -> dict[str, Any]:
    """A line of a request that is repeated."""
    return claude("system", second, subtype="api_error", error=error, retryAttempt=1)


def said(second: int, text: str, **more: Any) -> dict[str, Any]:
    """A line that Claude Code writes in the place of an answer."""
    message = {
        "id": "m",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": text}],
    }
    return claude("assistant", second, message, **more)


HEADING = {"type": "summary", "summary": "Kelp", "leafUuid": "u9"}
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "u0", "snapshot": {}}
USER = claude("user", 0, {"role": "user", "content": "Hello"})
RESULT = claude("user", 3, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]})
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
OTHER = {"type": "text", "text": "Two"}


def codex(kind: str, second: int, **payload: Any) -> dict[str, Any]:
    """A line of Codex."""
    return {"timestamp": f"2026-11-20T11:00:{second:02}.000Z", "type": kind, "payload": payload}


def item(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    return codex("response_item", second, type=kind, **payload)


def spoken(second: int, role: str, text: str) -> dict[str, Any]:
    return item(second, "message", role=role, content=[{"type": "output_text", "text": text}])


def counts(second: int, total: int, **last: int) -> dict[str, Any]:
    """A line with the tokens of the session, and those of its last answer."""
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return codex("event_msg", second, type="token_count", info=info if last else None)


META = codex(
    "session_meta", 0, id="s2", model_provider="azure", cwd="/home/kelp", base_instructions={"text": "long"}
)
TURN = codex("turn_context", 1, turn_id="t1", model="gpt-x", effort="high")
LAST = {"input_tokens": 100, "cached_input_tokens": 20, "output_tokens": 30, "reasoning_output_tokens": 9}


def read(*lines: Any) -> list[Record | BadRecord]:
    data = b"".join((line if type(line) is bytes else orjson.dumps(line)) + b"\n" for line in lines)
    return list(read_records(io.BytesIO(data)))


def responses(*lines: Any) -> list[ChatResponse]:
    """The responses of the answers in a session."""
    found = []
    for one in read(*lines):
        assert isinstance(one, Record)
        found.append(with_facts(normalize(one.body, one.provider, status=one.status or 200), one))
    return found


def test_the_lines_of_one_answer_of_claude_code_are_one_exchange() -> None:
    (record,) = read(
        SNAPSHOT,
        USER,
        part(1, {"type": "thinking", "thinking": "hm", "signature": "x"}),
        part(2, CALL),
        RESULT,
        part(4, {"type": "text", "text": "Hi"}, stop="tool_use", output_tokens=57),
    )
    assert isinstance(record, Record)
    assert (record.layout, record.id, record.session) == ("claude_code", "req_msg_1", "s1")
    assert (record.created.isoformat(), record.model, record.vendor, record.status) == (  # type: ignore[union-attr]
        "2026-11-20T10:00:01+00:00",
        None,
        "anthropic",
        None,
    )
    (found,) = responses(record.fields["record"])
    assert (found.model, found.text, found.reasoning, found.finish_reason) == (
        "claude-x",
        "Hi",
        "hm",
        "tool_calls",
    )
    assert [call.name for call in found.tool_calls] == ["Bash"]
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.cached_tokens) == (
        113,
        57,
        100,
    )


def test_answers_of_agents_that_run_at_once_stay_apart() -> None:
    found = responses(
        part(1, OTHER, "msg_1"),
        part(2, CALL, "msg_2"),
        part(3, {"type": "text", "text": "!"}, "msg_1", "end_turn"),
    )
    assert [(one.id, one.text, len(one.tool_calls)) for one in found] == [
        ("msg_1", "Two!", 0),
        ("msg_2", "", 1),
    ]


def test_a_line_that_a_resumed_session_repeats_counts_once() -> None:
    (found,) = responses(part(1, OTHER), part(2, CALL), part(1, OTHER), part(2, CALL, stop="tool_use"))
    assert (found.text, len(found.tool_calls), found.usage.prompt_tokens) == ("Two", 1, 113)


@pytest.mark.parametrize(("block", "finish"), [(CALL, "tool_calls"), (OTHER, "stop")])
def test_a_finish_reason_that_is_not_stored_is_made_up(block: Any, finish: str) -> None:
    (found,) = responses(part(1, block))
    assert (found.finish_reason, found.metadata.provenance["finish_reason"]) == (finish, Provenance.SYNTHETIC)


def test_an_answer_without_content_is_an_answer() -> None:
    line = part(1, OTHER)
    line["message"]["content"] = None
    (found,) = responses(line, part(2, OTHER))
    assert (found.text, found.finish_reason) == ("", "stop")


OVERLOADED = {"type": "overloaded_error", "message": "busy"}


@pytest.mark.parametrize(
    ("line", "status", "kind", "message"),
    [
        (failed(1, {"status": 529, "error": {"type": "error", "error": OVERLOADED}}), 529, "rate_limit", "busy"),
        (failed(1, {"status": 529, "error": OVERLOADED}), 529, "rate_limit", "busy"),
        (failed(1, {"cause": {"code": "ECONNRESET"}}), None, "server", "ECONNRESET"),
        (failed(1, {"message": "closed"}), None, "server", "closed"),
        (failed(1, {}), None, "server", "the provider reported an error"),
        (said(1, "/login", isApiErrorMessage=True, error="authentication_failed"), None, "authentication", "/login"),
        (said(1, "wait", isApiErrorMessage=True, error="rate_limit", apiErrorStatus=429), 429, "rate_limit", "wait"),
        (said(1, "so", isApiErrorMessage=True), None, "server", "so"),
        (said(1, "pay", isApiErrorMessage=True, error="billing_error", apiErrorStatus=402), 402, "quota", "pay"),
    ],
)  # fmt: skip
def test_a_failed_request_of_claude_code_is_an_error(
    line: Any, status: int | None, kind: str, message: str
) -> None:
    (record,) = read(line)
    assert isinstance(record, Record)
    info = normalize(record.body, record.provider, status=record.status or 200).error_info
    assert info is not None
    assert (record.status, info.kind, info.message) == (status, kind, message)


@pytest.mark.parametrize(
    "lines",
    [
        (HEADING,),
        (HEADING, SNAPSHOT, USER),
        (USER, said(1, "No response requested.")),
        (USER, claude("assistant", 1), claude("system", 2, subtype="api_error", error="?")),
        (META,),
        (META, TURN, counts(2, 0), spoken(3, "user", "Hi"), item(4, "function_call_output", output="a")),
    ],
)
def test_a_session_without_an_answer_has_no_exchange(lines: tuple[Any, ...]) -> None:
    assert read(*lines) == []
    assert is_session(map(orjson.dumps, lines))


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ([],),
        ({"type": "chat", "sessionId": "s1", "response": {}},),
        ({"type": "chat", "sessionId": "s1"}, {"id": 1}),
        ({"sessionId": "s1", "uuid": "u1", "timestamp": "x"},),
        ({"type": "event_msg", "payload": "x"},),
    ],
)
def test_other_lines_are_left_alone(lines: tuple[Any, ...]) -> None:
    assert len(read(*lines)) == len(lines)
    assert not is_session(map(orjson.dumps, lines))


def test_many_headings_do_not_make_a_session() -> None:
    heading = {"type": "title", "sessionId": "s1"}
    assert len(read(*[heading] * 20, part(1, OTHER))) == 21
    assert len(read(*[heading] * 19, part(1, OTHER))) == 1


def test_a_damaged_line_of_a_session_is_a_bad_record() -> None:
    one, two = read(USER, b'{"type":"assis', part(1, OTHER))
    assert isinstance(one, BadRecord)
    assert (one.number, two.number) == (2, 3)
    one, two = read(META, TURN, b"{", spoken(2, "assistant", "Hi"))
    assert (type(one), two.number) == (BadRecord, 4)


def test_every_byte_of_a_session_belongs_to_an_exchange(tmp_path: Path) -> None:
    lines = [USER, part(1, OTHER), part(2, CALL), RESULT, part(4, OTHER, "msg_2")]
    size = sum(len(orjson.dumps(line)) + 1 for line in lines)
    assert sum(record.size for record in read(*lines)) == size


def test_an_answer_of_codex_ends_with_its_token_counts() -> None:
    first, second = read(
        META,
        codex("session_meta", 0, id="origin"),  # of a fork
        TURN,
        spoken(2, "user", "Hello"),
        item(3, "reasoning", summary=[], encrypted_content="x"),
        item(4, "function_call", name="sh", arguments="{}", call_id="c1"),
        counts(5, 130, **LAST),
        item(6, "function_call_output", call_id="c1", output="a"),
        counts(7, 130, **LAST),  # repeated
        spoken(8, "assistant", "Done."),
        counts(9, 285, **LAST),
    )
    assert isinstance(first, Record)
    assert (first.layout, first.session, first.model, first.vendor, first.status) == (
        "codex",
        "s2",
        "gpt-x",
        "azure",
        None,
    )
    assert (first.created.isoformat(), first.provider) == ("2026-11-20T11:00:03+00:00", "openai_responses")  # type: ignore[union-attr]
    assert first.fields["record"]["session_meta"] == {"id": "s2", "cwd": "/home/kelp"}
    assert isinstance(second, Record)
    one, two = responses(first.fields["record"], second.fields["record"])
    assert (one.model, one.finish_reason, [call.name for call in one.tool_calls]) == (
        "gpt-x",
        "tool_calls",
        ["sh"],
    )
    assert (one.usage.prompt_tokens, one.usage.cached_tokens, one.usage.reasoning_tokens) == (100, 20, 9)
    assert (two.text, two.finish_reason, two.usage.completion_tokens) == ("Done.", "stop", 30)
    assert "finish_reason" not in two.metadata.provenance


@pytest.mark.parametrize("end", [[], [TURN], [spoken(3, "user", "Go on")]])
def test_an_answer_of_codex_without_token_counts_is_kept(end: list[Any]) -> None:
    (found,) = responses(META, TURN, spoken(2, "assistant", "Hi"), *end)
    assert (found.text, found.finish_reason) == ("Hi", "stop")
    words = found.metadata.provenance
    assert (words["usage"], words["finish_reason"]) == (Provenance.ABSENT, Provenance.SYNTHETIC)


def test_tokens_without_an_answer_count() -> None:
    (found,) = responses(META, TURN, counts(2, 130, **LAST))
    assert (found.text, found.usage.prompt_tokens) == ("", 100)


@pytest.mark.parametrize(
    ("info", "status", "kind"),
    [
        ({"response_too_many_failed_attempts": {"http_status_code": 429}}, 429, "rate_limit"),
        ({"usage_limit_exceeded": {}}, None, "unknown"),
        ("other", None, "unknown"),
        ({}, None, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_a_failed_turn_of_codex_is_one_error(info: Any, status: int | None, kind: str) -> None:
    error = {"message": "no", "codex_error_info": info}
    (record,) = read(
        META,
        TURN,
        codex("event_msg", 2, type="error", **error),
        codex("event_msg", 2, type="task_complete", error=error),
        codex("event_msg", 3, type="task_complete"),
        codex("event_msg", 3, type="agent_message", message="x"),
    )
    assert isinstance(record, Record)
    (found,) = responses(record.fields["record"])
    assert found.error_info is not None
    assert (record.status, found.model, found.error_info.kind, found.error_info.message) == (
        status,
        "gpt-x",
        kind,
        "no",
    )
