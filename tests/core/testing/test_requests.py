"""The requests that a plugin builds are proved like its answers: what is asked is in the body, or an adaptation names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    Adaptation,
    AdaptationKind,
    CallIds,
    ChatRequest,
    HTTPRequest,
    OpenAIChatDialect,
    UnsupportedRequestError,
    WayBack,
)
from crosswalk.testing import Capture, check_capture

ASKED = orjson.dumps(
    {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 1,
    }
)
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def answer(case: str, finish: str, request: bytes | None, **message: Any) -> Capture:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": None, **message},
        "finish_reason": finish,
    }
    body = orjson.dumps(
        {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )
    return Capture(case, Path(case), body, path="/v1/chat/completions", request=request)


CAPTURES = [
    answer("text", "stop", ASKED, content="Hello."),
    answer("call", "tool_calls", b"not JSON", tool_calls=[CALL]),
    answer("cut", "length", None, content="Hel"),
    answer("thought", "stop", None, content="It is noon.", reasoning_content="Look at the sun."),
]


class Tern(OpenAIChatDialect):
    """A look-alike that builds right requests."""

    title = "Tern"

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        http_request = self.built(request)
        return self.changed(http_request, request) or http_request

    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest | None:
        """A mistake changes the right request here."""


class ForgetsTheTool(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        http_request.body.pop("tools", None)


class ForgetsTheModel(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        del http_request.body["model"]


class ForgetsTheOptions(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        http_request.body.pop("seed", None)


class NamesWhatItForgets(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest:
        http_request.body.pop("seed", None)
        return http_request.adapted(Adaptation.dropped("seed", "its engine has none"))


class ForgetsWhatCameBefore(Tern):
    """It says that it leaves out something else."""

    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest:
        http_request.body.pop("seed", None)
        http_request.body["messages"] = http_request.body["messages"][-1:]
        return http_request.adapted(Adaptation.dropped("seed", "its engine has none"))


class NeverStreams(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        http_request.body.pop("stream", None), http_request.body.pop("stream_options", None)


class OtherWords(Tern):
    style: ClassVar[Any] = {"options": {"max_tokens": "max_completion_tokens"}}


class SwapsOptions(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        body = http_request.body
        if "temperature" in body:
            body["temperature"], body["max_tokens"] = body["max_tokens"], body["temperature"]


class TakesOtherIds(Tern):
    """Its server refuses the ids of the recording, so that others stand for them."""

    call_ids: ClassVar[CallIds | None] = CallIds(pattern="[a-zA-Z0-9]{9}", maximum=9)


class ForgetsTheIdsOfResults(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        for message in http_request.body["messages"]:
            message.pop("tool_call_id", None)


class ForgetsTheConversation(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        http_request.body["messages"] = http_request.body["messages"][-1:]


class AsksWhatIsARule(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest | None:
        for message in http_request.body["messages"]:
            message["role"] = message["role"].replace("system", "user")
        return None


class SaysThatItHasNoRules(AsksWhatIsARule):
    """Its server takes no system text, and it says so."""

    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest:
        super().changed(http_request, request)
        return http_request.adapted(Adaptation("messages[0]", AdaptationKind.TOLD, "its engine has no rules"))


class Thinks(Tern):
    """The reasoning goes back under its name."""

    way_back = WayBack(takes_reasoning=True)


class ThinksInParts(Thinks):
    """Each part says what it is."""

    kind: ClassVar[str] = "thought"

    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        for message in http_request.body["messages"]:
            if thought := message.pop("reasoning_content", None):
                text_part = {"type": "text", "text": message["content"]}
                message["content"] = [{"type": self.kind, "text": thought}, text_part]


class SaysWhatItThinks(ThinksInParts):
    kind = "text"


class Breaks(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        raise KeyError("messages")


class RefusesAll(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> None:
        raise UnsupportedRequestError("its server takes nothing", options=["messages"])


def found_in(plugin: Any, name: str = "tern") -> list[str]:
    registry = Registry(installed=[])
    registry.register(plugin, name)
    checks = ["requests say all"]
    return [
        problem.line
        for capture in CAPTURES
        for problem in check_capture(registry.mapper(name), capture, others=CAPTURES, checks=checks)
    ]


@pytest.mark.parametrize(
    "plugin",
    [
        Tern(),
        TakesOtherIds(),
        NamesWhatItForgets(),
        SaysThatItHasNoRules(),
        Thinks(),
        ThinksInParts(),
        RefusesAll(),
    ],
    ids=lambda plugin: type(plugin).__name__,
)
def test_a_right_builder_has_no_problem(plugin: Any) -> None:
    assert found_in(plugin) == []


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (ForgetsTheTool(), "text, request: the tool 'look_at_kelp' is not in the body"),
        (ForgetsTheModel(), "text, request: the model 'kelp-7' is not in the body"),
        (ForgetsTheOptions(), "text, request.seed: is neither in the body nor among the adaptations"),
        (ForgetsWhatCameBefore(), "text, request: the system text 'Kelp is brown.' is not in the body"),
        (ForgetsWhatCameBefore(), "text, request: the assistant text 'No, brown.' is not in the body"),
        (NeverStreams(), "text, request: a stream is asked for as a whole answer is"),
        (OtherWords(), "request.max_tokens: is at max_completion_tokens, and recorded requests have it at max_tokens"),
        (SwapsOptions(), "request.temperature: is at max_tokens, where recorded requests have other numbers"),
        (SwapsOptions(), "request.max_tokens: is at temperature, where recorded requests have other numbers"),
        (ForgetsTheIdsOfResults(), "the next request has not all of its ids, of calls and of their results"),
        (ForgetsTheConversation(), "text, request: the next request has not all of its text"),
        (ForgetsTheConversation(), "call, request: the next request has not all of its calls"),
        (AsksWhatIsARule(), "text, request: it says 'Kelp is brown.' as it says 'Is it green?', which has another role"),
        (SaysWhatItThinks(), "thought, request: the next request says its reasoning as it says its text"),
        (Breaks(), "call, request: provider 'tern': build_request failed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Tern) else None,
)  # fmt: skip
def test_a_request_that_loses_something_is_a_problem(plugin: Any, message: str) -> None:
    found = found_in(plugin)
    assert any(message in line for line in found), found


def test_a_request_that_the_server_refuses_is_a_problem() -> None:
    """By its rules for conversations, if the kit has them: a result without the call that asked for it."""
    found = found_in(ForgetsTheConversation(), "openai")
    assert any("call, request: the server refuses it: " in line for line in found), found
