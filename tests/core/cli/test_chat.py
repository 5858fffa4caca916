from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosswalk.agent import ChatSession
from crosswalk.service import SyncEventStream
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer

from .conftest import Done, Terminal, body, stream, to

Run = Callable[..., Done]
Give = Callable[[bytes], None]
SESSION = Path("session.json")


def asked(server: ReplayServer, number: int = -1) -> list[tuple[str, str]]:
    """The conversation in a request."""
    return [(one["role"], one["content"]) for one in server.requests[number].json()["messages"]]


def said(file: Path = SESSION) -> list[tuple[str, str]]:
    """The conversation in a session's file."""
    return [(message.role.value, message.text) for message in ChatSession.load(file).messages]


def test_a_session_goes_on_from_line_to_line_and_from_run_to_run(
    run: Run, server: ReplayServer, stdin: Give
) -> None:
    server.add(stream("Hello", ".")).add(stream("Fine.")).add(stream("Bye."))
    stdin(b"Hi\n\n  \nHow are you?")
    done = run("chat", *to(server), "--session", SESSION, "--system", "Be brief.")
    assert done == (0, "Hello.\nFine.\n", "5 turns\n")
    assert asked(server) == [
        ("system", "Be brief."),
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "How are you?"),
    ]
    stdin(b"Bye\r\n")
    assert run("chat", *to(server), "--session", SESSION).out == "Bye.\n"
    assert asked(server) == [*said()[:-1]]
    assert len(said()) == 7


def test_a_panel_may_be_had(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(body({"content": "Hello."}))
    stdin(b"Hi\n")
    done = run("chat", *to(server), "--panel", "--no-stream")
    assert done.out == "Hello.\n"
    assert done.err.startswith("Tokens: 3 prompt, 2 completion (5 total)\n")


# Commands.


def test_quit_ends_it(run: Run, server: ReplayServer, stdin: Give) -> None:
    stdin(b"/quit\nHi\n")
    assert run("chat", *to(server)) == (0, "", "0 turns\n")
    assert server.requests == ()


def test_system_shows_and_replaces_the_system_message(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("A"), times=None)
    stdin(b"Hi\n/system\n/system Be brief.\n/system Be long.\n/system\nAgain\n")
    done = run("chat", *to(server), "--session", SESSION)
    assert done.err.splitlines()[:2] == ["system: (none)", "system: Be long."]
    assert [text for role, text in asked(server) if role == "system"] == ["Be long."]
    assert said()[0] == ("system", "Be long.")


def test_retry_asks_again_in_place_of_the_answer(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("One")).add(stream("Two"))
    stdin(b"/retry\nHi\n/retry\n")
    done = run("chat", *to(server), "--session", SESSION)
    assert done.err.startswith("nothing was asked yet\n")
    assert asked(server, 0) == asked(server, 1) == [("user", "Hi")]
    assert said() == [("user", "Hi"), ("assistant", "Two")]


def test_retry_that_fails_loses_nothing(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("One")).add(Answer.failure(400))
    stdin(b"Hi\n/retry\n")
    assert run("chat", *to(server), "--session", SESSION).status == 1
    assert said() == [("user", "Hi"), ("assistant", "One")]


def test_retry_of_what_was_not_answered(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("One")).add(Answer.failure(400)).add(stream("Two"))
    stdin(b"A\nB\n/retry\n")
    done = run("chat", *to(server), "--session", SESSION)
    assert done.status == 1
    assert "InvalidRequestError: vllm: invalid_request (HTTP 400)" in done.err
    assert said() == [("user", "A"), ("assistant", "One"), ("user", "B"), ("assistant", "Two")]


def test_retry_goes_back_to_the_last_message_of_the_user(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("One")).add(stream("Two"))
    stdin(b"A\n/quit\n")
    run("chat", *to(server), "--session", SESSION)
    stdin(b"/retry\n")
    run("chat", *to(server), "--session", SESSION)
    assert said() == [("user", "A"), ("assistant", "Two")]


def test_save_names_a_file_from_then_on(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("One"), times=None)
    stdin(b"A\n/save\n/save session.json\n/save\nB\n/save no/where.json\n")
    done = run("chat", *to(server))
    lines = done.err.splitlines()
    assert lines[:3] == ["where to? /save FILE", "saved: session.json", "saved: session.json"]
    assert lines[3] == "no/where.json: not saved: No such file or directory"
    assert done.status == 1
    assert len(said()) == 4


def test_two_slashes_begin_a_message(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("A"))
    stdin(b"//etc is a folder\n/what\x1b\n")
    done = run("chat", *to(server))
    assert asked(server) == [("user", "/etc is a folder")]
    assert "no command /what\\u001b; commands: /system" in done.err


# What fails or ends early.


def test_a_line_that_is_no_text_is_refused_and_the_rest_goes_on(
    run: Run, server: ReplayServer, stdin: Give
) -> None:
    server.add(stream("A"))
    stdin(b"\xff\n/system \xff\nHi\n")
    done = run("chat", *to(server))
    assert (done.status, done.out) == (1, "A\n")
    assert done.err.splitlines()[:2] == [
        "crosswalk: the user message is not UTF-8",
        "crosswalk: the system message is not UTF-8",
    ]


def test_a_call_of_a_tool_is_no_turn(run: Run, server: ReplayServer, stdin: Give) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    server.add(body({"tool_calls": [call]}, "tool_calls"))
    stdin(b"Hi\n")
    done = run("chat", *to(server), "--no-stream", "--session", SESSION)
    assert done.err.startswith("-> look({})\nthe model asks for tools, and a chat has none")
    assert not SESSION.exists()


def test_an_answer_that_was_cut_short_is_marked(run: Run, server: ReplayServer, stdin: Give) -> None:
    server.add(stream("One", finish_reason="length"))
    stdin(b"Hi\n")
    assert run("chat", *to(server)).err.startswith("[length]\n2 turns")


def interrupted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, *, at: int) -> None:
    """Let the user press Ctrl-C in the call number *at* of a method, and in no other one."""
    method, calls = getattr(owner, name), []

    def called(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == at:
            raise KeyboardInterrupt
        return method(*arguments)

    monkeypatch.setattr(owner, name, called)


def test_ctrl_c_ends_an_answer_and_not_the_session(
    run: Run, server: ReplayServer, stdin: Give, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(stream("one ", "two ", "three"), Stall(after_events=2)).add(stream("Bye."))
    interrupted(monkeypatch, SyncEventStream, "__next__", at=4)  # after response.created and two texts
    stdin(b"Hi\nBye\n")
    done = run("chat", *to(server), "--session", SESSION)
    assert done.status == 0
    assert "interrupted: the answer is not complete" in done.err
    assert [text for _, text in said()] == ["Hi", "one two ", "Bye", "Bye."]


def test_ctrl_c_before_anything_came_leaves_no_turn(
    run: Run, server: ReplayServer, stdin: Give, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(stream("Bye."))
    interrupted(monkeypatch, SyncEventStream, "__next__", at=1)
    stdin(b"Hi\nBye\n")
    run("chat", *to(server), "--session", SESSION)
    assert [text for _, text in said()] == ["Bye", "Bye."]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("oops", "session.json: cannot read ChatSession: not JSON"),
        ('{"format_version": "9.0"}', "session.json: cannot read ChatSession: unknown format version"),
    ],
)
def test_a_file_that_is_no_session_is_left_alone(
    run: Run, server: ReplayServer, content: str, error: str
) -> None:
    SESSION.write_text(content)
    done = run("chat", *to(server), "--session", SESSION)
    assert done.status == 2
    assert error in done.err
    assert SESSION.read_text() == content


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["--session", "no/where.json"], "no/where.json: no such folder"),
        (["--session", "."], ".: Is a directory"),
        (["--temperature", "-1"], "temperature must be a number"),
    ],
)
def test_what_cannot_begin_is_said(run: Run, server: ReplayServer, more: list[str], error: str) -> None:
    done = run("chat", *to(server), *more)
    assert done.status == 2
    assert error in done.err


# At a terminal.


def test_at_a_terminal_one_is_asked(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch, terminal: Callable[[str], Terminal]
) -> None:
    keyboard = Terminal()
    keyboard.buffer.write(b"Hi\n")
    keyboard.seek(0)
    monkeypatch.setattr(sys, "stdin", keyboard)
    server.add(stream("Hello."))
    shown = terminal("stdout")
    done = run("chat", *to(server))
    assert shown.text() == "> Hello.\n> "
    assert done.err.startswith("0 turns so far; commands: /system [TEXT], /retry, /save [FILE], /quit")
    assert done.status == 0


def test_an_option_that_the_provider_does_not_have_is_said(
    run: Run, server: ReplayServer, stdin: Give
) -> None:
    """Nothing is sent, and the conversation can go on."""
    stdin(b"Hello?\n/quit\n")
    done = run("chat", *to(server, "openai"), "--top-k", "3")
    assert (done.status, server.requests) == (1, ())
    assert "top_k" in done.err
