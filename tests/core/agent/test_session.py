"""A conversation that is kept: what it holds, what is sent, and what its file may look like."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

from crosswalk import (
    CanonicalJSONError,
    ChatMessage,
    ChatResponse,
    FrozenObject,
    ProviderError,
    ResponseMetadata,
    ResponseValidationError,
    Segment,
    SegmentType,
    TextPart,
    ToolCall,
    UsageInfo,
    normalize,
)
from crosswalk.agent import SESSION_FORMAT_VERSION, ChatSession
from pages import ROOT
from strategies import chat_messages, chat_responses
from tries import tries

STORED = sorted((ROOT / "tests/stored/sessions").glob("v*/*.json"))
CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def answer() -> ChatResponse:
    body = (ROOT / "tests/captures/vllm/reasoning_chat_think.response.json").read_bytes()
    return normalize(body, "vllm")


def test_a_conversation_is_kept_as_it_came() -> None:
    session = ChatSession([ChatMessage.system("Be brief.")])
    session.add_message(ChatMessage.user("Why?"))
    response = answer()
    session.add_response(response)
    assert session.turns[2] is response
    assert session.messages == (ChatMessage.system("Be brief."), ChatMessage.user("Why?"), response.message)
    assert session.usage == response.usage
    assert len(session) == 3
    assert repr(session) == f"ChatSession(id='{session.id}', turns=3)"


def test_a_new_session_has_an_id_and_a_time_of_its_own() -> None:
    one, other = ChatSession(), ChatSession()
    assert one.id != other.id
    assert one.created.tzinfo is UTC
    assert (one.turns, one.messages, one.usage) == ((), (), UsageInfo.EMPTY)
    summer = datetime(2026, 7, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert ChatSession(created=summer).created == datetime(2026, 7, 1, 0, tzinfo=UTC)


def test_what_is_no_turn_is_refused() -> None:
    session = ChatSession()
    with pytest.raises(ResponseValidationError):
        session.add_message("Why?")  # type: ignore[arg-type]
    with pytest.raises(ResponseValidationError):
        session.add_response(ChatMessage.user("Why?"))  # type: ignore[arg-type]
    with pytest.raises(ResponseValidationError):
        ChatSession(created=datetime(2026, 1, 1))
    with pytest.raises(ResponseValidationError):
        ChatSession(created="2026-01-01")  # type: ignore[arg-type]
    for id in (7, b"x", "\ud800"):
        with pytest.raises(ResponseValidationError, match="the id of a session"):
            ChatSession(id=id)  # type: ignore[arg-type]
    with pytest.raises(ProviderError):
        session.add_response(ChatResponse.error("overloaded", model="m"))
    assert session.turns == ()


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    session = ChatSession([ChatMessage.user([TextPart("Why?")])], id="s", created=CREATED)
    session.add_response(answer())
    session.add_message(ChatMessage.tool_result("c", "4", name="sum"))
    file = tmp_path / "session.json"
    file.write_text("what was there before")
    session.save(file)
    loaded = ChatSession.load(str(file))
    assert (loaded.id, loaded.created) == ("s", CREATED)
    assert loaded.turns == session.turns
    assert loaded.to_json() == session.to_json()
    first, second = loaded.turns[1], session.turns[1]
    assert isinstance(first, ChatResponse)
    assert isinstance(second, ChatResponse)
    assert first.same_content(second)
    assert [one.name for one in tmp_path.iterdir()] == ["session.json"]


# ------------------------------------------------------------------------------- every call has its result

ADD, SUM = ToolCall("1", "add"), ToolCall("2", "sum")


def asking(finish: str = "tool_calls", *calls: ToolCall) -> ChatResponse:
    message = ChatMessage.assistant(None, tool_calls=calls or (ADD, SUM))
    answer = ChatResponse.success(message, UsageInfo.EMPTY, "m", ResponseMetadata("p", "m"))
    return evolve(answer, finish_reason=finish)


def said(session: ChatSession) -> list[str]:
    return [
        turn.text if turn.tool_call_id is None else f"{turn.tool_call_id}: {turn.text}"
        for turn in session.messages
    ]


def result(id: str, text: str = "4") -> ChatMessage:
    return ChatMessage.tool_result(id, text)


@pytest.mark.parametrize("finish", ["length", "cancelled", "content_filter"])
def test_no_call_of_a_cut_answer_stays_open(finish: str) -> None:
    """Its last one may be half, and no server takes a call without a result."""
    session = ChatSession([ChatMessage.user("?")])
    session.add_response(asking(finish, ADD, ToolCall("2", "sum", '{"a')))
    untold = f"Error: not run: the answer ended with {finish}"
    assert session.open_calls == ()
    assert said(session) == ["?", "", f"1: {untold}", f"2: {untold}"]
    assert session.messages[1].tool_calls == (ADD, ToolCall("2", "sum", '{"a'))


def test_no_call_of_an_answer_with_an_unknown_end_stays_open() -> None:
    cut = asking()
    session = ChatSession(
        [evolve(cut, metadata=evolve(cut.metadata, provenance={"finish_reason": "unmapped"}))]
    )
    assert session.open_calls == ()
    assert said(session)[1] == "1: Error: not run: the answer ended with an unknown finish reason"


def test_calls_are_open_until_they_are_answered() -> None:
    session = ChatSession([asking()])
    assert session.open_calls == (ADD, SUM)
    session.add_message(result("2"))
    assert session.open_calls == (ADD,)
    session.add_message(result("1"))
    assert session.open_calls == ()
    assert said(session) == ["", "1: 4", "2: 4"]  # in the order of the calls
    session.add_message(result("1", "5"))
    assert said(session) == ["", "1: 5", "2: 4"]
    session.add_message(ChatMessage.user("And?"))
    assert (session.open_calls, ChatSession().open_calls) == ((), ())


def test_calls_that_are_open_when_somebody_speaks_are_answered() -> None:
    went_on = "Error: not run: the conversation went on"
    for message in (ChatMessage.assistant(None, tool_calls=[ADD, SUM]), asking()):
        session = ChatSession([message, result("1"), ChatMessage.user("Never mind.")])
        assert said(session) == ["", "1: 4", f"2: {went_on}", "Never mind."]
        assert ChatSession(session.turns).turns == session.turns


def test_a_late_result_goes_where_it_belongs() -> None:
    """Behind the answer that asked for it: where the conversation is by then, no server takes it."""
    session = ChatSession([asking(), result("1"), ChatMessage.user("Never mind."), result("2")])
    assert said(session) == ["", "1: 4", "2: 4", "Never mind."]
    session.add_message(result("1", "5"))
    assert said(session)[1] == "1: 5"


def test_a_result_of_no_call_stays_where_it_was_said() -> None:
    session = ChatSession([result("x"), asking(), result("y"), result("y"), result("1")])
    assert said(session) == ["x: 4", "", "1: 4", "y: 4", "y: 4"]
    assert session.open_calls == (SUM,)


def test_an_answer_is_taken_away_with_its_results() -> None:
    session = ChatSession([ChatMessage.user("?"), asking(), result("1"), result("2")])
    assert list(session) == list(session.turns)
    taken = session.pop()
    assert len(taken) == 3
    assert session.pop() == (ChatMessage.user("?"),)
    with pytest.raises(IndexError, match="empty"):
        session.pop()
    session.extend(taken)
    assert (session.turns, session.open_calls) == (taken, ())


def test_a_file_that_cannot_be_written_stays_what_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "session.json"
    folder.mkdir()
    with pytest.raises(OSError, match="session.json"):
        ChatSession().save(folder)
    assert list(tmp_path.iterdir()) == [folder]
    unwritable = ResponseMetadata("p", "m", extensions=FrozenObject.adopt({"x": float("nan")}))
    answer = ChatResponse.success(ChatMessage.assistant("hi"), UsageInfo.EMPTY, "m", unwritable)
    with pytest.raises(CanonicalJSONError):
        ChatSession([ChatMessage.user("hi"), answer]).save(tmp_path / "other.json")
    assert list(tmp_path.iterdir()) == [folder]


@settings(max_examples=tries(30))
@given(st.lists(chat_messages | chat_responses, max_size=4))
def test_whatever_was_said_comes_back(turns: list[Any]) -> None:
    turns = [turn for turn in turns if not isinstance(turn, ChatResponse) or turn.error_info is None]
    try:
        data = ChatSession(turns, id="s", created=CREATED).to_json()
    except CanonicalJSONError:
        return  # what JSON cannot say
    loaded = ChatSession.from_json(data)
    assert loaded.messages == ChatSession(turns).messages
    assert loaded.to_json() == data


# --------------------------------------------------------------------------------------- files of others


@pytest.mark.parametrize("file", STORED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_stored_sessions_stay_readable(file: Path) -> None:
    session = ChatSession.load(file)
    if file.parent.name == f"v{SESSION_FORMAT_VERSION}":
        assert session.to_json(indent=True) + b"\n" == file.read_bytes()
    assert [message.role.value for message in session.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    asked = session.turns[2]
    assert isinstance(asked, ChatResponse)
    assert asked.segments[0] == Segment(SegmentType.REASONING, "I must look.", {"signature": "c2lnbmVk"})
    assert asked.tool_calls == (ToolCall("call_1", "get_weather", '{"city": "Paris"}'),)


def test_there_are_stored_sessions() -> None:
    assert STORED


EMPTY = {"format_version": "1.0", "id": "s", "created": "2026-01-02T03:04:05Z", "turns": []}
MESSAGE = {"role": "user", "content": "Why?"}


def test_unknown_keys_and_later_minors_are_read() -> None:
    for more in ({}, {"format_version": "1.7"}, {"title": "x"}, {"turns": [{"message": MESSAGE, "note": 1}]}):
        ChatSession.from_json(orjson.dumps(EMPTY | more))
    unversioned = {key: value for key, value in EMPTY.items() if key != "format_version"}
    assert ChatSession.from_json(orjson.dumps(unversioned).decode()).id == "s"


def nested(levels: int) -> ChatSession:
    """A session with an answer that has extensions of so many levels."""
    extensions: Any = 1
    for _ in range(levels):
        extensions = {"a": extensions}
    response = answer()
    return ChatSession([evolve(response, metadata=ResponseMetadata("p", "m", extensions=extensions))])


@pytest.mark.parametrize("indent", [False, True])
def test_deep_turns_are_saved_or_refused(indent: bool) -> None:
    """At each depth up to what a response may have, one of the two, and what was saved is read."""
    refused = []
    for levels in range(240, 255):
        try:
            saved = nested(levels).to_json(indent=indent)
        except CanonicalJSONError as error:
            assert "cannot write" in str(error)
            refused.append(levels)
        else:
            assert not refused
            assert ChatSession.from_json(saved).turns == nested(levels).turns
    assert refused


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(ResponseValidationError, match="lone surrogate"):
        ChatSession(id="\ud800")
    session = ChatSession()
    session.id = "\ud800"
    with pytest.raises(CanonicalJSONError, match="cannot write ChatSession"):
        session.to_json()


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "expected object, got array @ $"),
        (
            EMPTY | {"format_version": "2.0"},
            "unknown format version '2.0' (readable: 1.x) @ $.format_version",
        ),
        (EMPTY | {"format_version": 1}, "expected string, got number @ $.format_version"),
        (
            b'{"format_version":' + b"[" * 1000 + b"]" * 1000 + b"}",
            "expected string, got array @ $.format_version",
        ),
        ({"turns": []}, "a required key is missing @ $.created"),
        (EMPTY | {"id": ""}, "@ $"),
        (EMPTY | {"created": "yesterday"}, "@ $.created"),
        (EMPTY | {"turns": {}}, "expected array, got object @ $.turns"),
        (EMPTY | {"turns": [MESSAGE]}, "a turn is either a message or a response @ $.turns[0]"),
        (EMPTY | {"turns": [{"message": {"role": "user", "content": 3}}]}, "@ $.turns[0].message.content"),
        (EMPTY | {"turns": [{"message": {"role": "narrator"}}]}, "@ $.turns[0].message.role"),
        (EMPTY | {"turns": [{"message": MESSAGE}, {"response": {"id": "x"}}]}, "@ $.turns[1].response"),
    ],
)
def test_what_is_no_session_is_refused(document: Any, problem: str) -> None:
    data = document if isinstance(document, bytes) else orjson.dumps(document)
    with pytest.raises(CanonicalJSONError) as caught:
        ChatSession.from_json(data)
    assert str(caught.value).startswith("cannot read ChatSession: ")
    assert any(problem in one for one in caught.value.problems)


def test_an_error_response_is_no_turn_of_a_file() -> None:
    failed = orjson.loads(ChatSession([answer()]).to_json())
    failed["turns"][0]["response"]["finish_reason"] = "error"
    with pytest.raises(CanonicalJSONError, match=r"an error response cannot be a turn @ \$\.turns"):
        ChatSession.from_json(orjson.dumps(failed))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["turns", "message", "response", "id", "role", "content", "created"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_gives_a_session_or_our_error(value: Any) -> None:
    data = orjson.dumps(EMPTY | value if isinstance(value, dict) else value)
    with suppress(CanonicalJSONError):
        ChatSession.from_json(data)


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_file_that_is_there_keeps_its_permissions_and_a_link_its_end(tmp_path: Path) -> None:
    file, link = tmp_path / "session.json", tmp_path / "link.json"
    session = ChatSession([ChatMessage.user("Hi.")])
    session.save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o640)
    link.symlink_to(file)
    session.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert ChatSession.load(link).id == session.id


def test_a_session_begins_with_what_a_request_takes() -> None:
    given = {"role": "user", "content": "Why?"}
    assert ChatSession([given]).messages == ChatSession("Why?").messages == (ChatMessage.user("Why?"),)
    with pytest.raises(ResponseValidationError, match=r"messages\[0\]\.role: must be one of"):
        ChatSession([{"role": "robot", "content": "x"}])
    with pytest.raises(ResponseValidationError, match="messages must be a text, .*not number"):
        ChatSession().extend(7)  # type: ignore[arg-type]


def test_an_id_that_is_no_text_is_not_written() -> None:
    """It could not be read again."""
    session = ChatSession("Why?")
    session.id = 7  # type: ignore[assignment]
    with pytest.raises(CanonicalJSONError, match="the id is not a string"):
        session.to_json()
