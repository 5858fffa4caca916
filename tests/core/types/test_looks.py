"""Rich, its tracebacks and notebooks show the ``repr`` of a value, and no more."""

from __future__ import annotations

import io
import pkgutil
from importlib import import_module
from typing import Any

import attrs
import pytest
from rich.console import Console
from rich.traceback import Traceback

import crosswalk
from crosswalk import (
    ChatMessage,
    ChatResponse,
    IncompleteStreamError,
    ResponseDelta,
    Segment,
    SegmentType,
    ToolCall,
    UsageInfo,
    normalize,
)
from crosswalk.records import read_record
from crosswalk.service import ChatRequest, Endpoint, HTTPRequest
from crosswalk.text import brief
from crosswalk.types import RawEvents

WORDS = "lighthouse " * 300
ANSWER = ChatResponse.success(
    message=ChatMessage.assistant(WORDS, tool_calls=[ToolCall("c", "f", f'{{"a": "{WORDS}"}}')]),
    usage=UsageInfo(1, 2),
    model="m<b>",
)
VALUES: list[Any] = [
    ANSWER,
    ANSWER.message,
    ResponseDelta(0, content_delta=WORDS),
    Segment(SegmentType.TEXT, WORDS),
    ToolCall("c", "f", WORDS),
    ChatRequest([ANSWER, ChatMessage.user(WORDS)]),
    read_record(b'{"body": "%s"}' % WORDS.encode()),
    RawEvents([WORDS.encode()]),
]


def printed(value: object) -> str:
    console = Console(file=io.StringIO(), width=100, legacy_windows=False)
    console.print(value)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_rich_and_notebooks_show_no_more_than_repr(value: Any) -> None:
    shown = repr(value).count("lighthouse")
    assert shown < 25
    assert printed(value).count("lighthouse") <= shown
    assert printed({"a": [value]}).count("lighthouse") <= shown
    if not isinstance(value, RawEvents):
        html = value._repr_html_()
        assert html.startswith(f"<table><caption>{type(value).__name__}</caption>")
        assert html.count("lighthouse") <= shown
        assert "<b>" not in html


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_repr_is_a_string_and_nothing_more(value: Any) -> None:
    """Programs that pass on failures, such as pytest-xdist between its processes, take no other."""
    assert type(repr(value)) is str


def test_the_fields_are_those_of_the_value_and_not_of_one_inside() -> None:
    @brief
    class Pair:
        def __repr__(self) -> str:
            return f"Pair({ToolCall('c', 'f', '{}')!r})"

    assert printed(Pair()) == "Pair(ToolCall(id='c', name='f', arguments='{}'))\n"


def test_rich_shows_the_fields_of_repr_by_name() -> None:
    assert printed(ToolCall("c", "f", "{}")) == "ToolCall(id='c', name='f', arguments='{}')\n"
    assert printed(Endpoint("vllm", model="m", base_url="http://127.0.0.1")).startswith("Endpoint(")


@pytest.mark.sweep
def test_a_traceback_with_locals_shows_content_once_at_most() -> None:
    def fail() -> None:
        partial = ANSWER  # noqa: F841  # what the traceback shows
        normalize(b'{"message": {"content": "%s"}, "done": false}' % WORDS.encode(), "ollama")

    try:
        fail()
    except IncompleteStreamError as error:
        assert error.partial is not None
        trace = Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True)
        console = Console(file=io.StringIO(), width=100)
        console.print(trace)
        written = console.file.getvalue()  # type: ignore[attr-defined]
        frame = written.partition("partial = ChatResponse(")[2].partition("╰──")[0]
        assert 0 < frame.count("lighthouse") <= repr(ANSWER).count("lighthouse") + 1
    else:
        pytest.fail("it has not failed")


def test_no_secret_is_shown() -> None:
    key = "sk-very-secret-1234"
    endpoint = Endpoint("vllm", model="m", api_key=key, base_url="http://127.0.0.1")
    request = HTTPRequest("/v1", {"a": 1}, headers={"Authorization": f"Bearer {key}"})
    for value in (endpoint, request, [endpoint, request]):
        assert key not in printed(value)
        assert key not in repr(value)
    assert key not in endpoint._repr_html_() + request._repr_html_()  # type: ignore[attr-defined]


def modules() -> list[str]:
    return [
        found.name
        for found in pkgutil.walk_packages(crosswalk.__path__, "crosswalk.")
        if not found.name.startswith(("crosswalk.cli", "crosswalk.testing", "crosswalk.__main__"))
    ]


def is_made_by_attrs(method: Any) -> bool:
    return method is object.__repr__ or "attrs generated" in method.__code__.co_filename


def test_every_class_with_a_repr_of_its_own_shows_that() -> None:
    """Rich asks an attrs class for its fields, whatever its repr is, unless it is configured otherwise."""
    known: set[type] = set()
    for name in modules():
        try:
            module = import_module(name)
        except ImportError:  # an extra that is not installed
            continue
        known |= {one for one in vars(module).values() if isinstance(one, type) and attrs.has(one)}
    ours = {one for one in known if one.__module__.startswith("crosswalk.")}
    own = {one for one in ours if not is_made_by_attrs(one.__repr__)}
    assert len(own) > 30
    assert {one.__name__ for one in own if not hasattr(one, "__rich_repr__")} == set()
