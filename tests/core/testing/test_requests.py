"""The requests that a plugin builds are proved like its answers: what is asked is in the body, or an adaptation names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    Adaptation,
    AdaptationKind,
    CallIds,
    ChatMessage,
    ChatRequest,
    HTTPRequest,
    OpenAIChatDialect,
    UnsupportedRequestError,
    WayBack,
)
from crosswalk.testing import Capture, check_capture
from crosswalk.testing.evidence import unproven

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
        (ForgetsTheTool(), "text, request.tools: 'look_at_kelp' is neither in the body nor among the adaptations"),
        (ForgetsTheModel(), "text, request.model: 'kelp-7' is neither in the body nor among the adaptations"),
        (ForgetsTheOptions(), "text, request.seed: 4242424 is neither in the body nor among the adaptations"),
        (ForgetsWhatCameBefore(), "text, request.messages[0]: 'Kelp is brown.' is neither in the body nor among the adaptations"),
        (ForgetsWhatCameBefore(), "text, request.messages[2]: 'No, brown.' is neither in the body nor among the adaptations"),
        (NeverStreams(), "text, request.stream: streamed is asked for as whole is"),
        (OtherWords(), "request.max_tokens: is at max_completion_tokens, as in no recorded request; what recorded requests have at max_tokens is never built"),
        (ForgetsTheIdsOfResults(), "the next request has not all of its ids, of calls and of their results"),
        (ForgetsTheConversation(), "text, request: the next request has not all of its text"),
        (ForgetsTheConversation(), "call, request: the next request has not all of its calls"),
        (AsksWhatIsARule(), "text, request.messages: it says 'Kelp is brown.' as it says 'Is it green?', which is of another kind"),
        (SaysWhatItThinks(), "request.messages: it says 'How deep is it?' as it says 'I look.', which is of another kind"),
        (Breaks(), "call, request: provider 'tern': build_request failed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Tern) else None,
)  # fmt: skip
def test_a_request_that_loses_something_is_a_problem(plugin: Any, message: str) -> None:
    found = found_in(plugin)
    assert any(message in line for line in found), found


STATED = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "max_tokens": 9,
    "temperature": 0.5,
    "top_p": 1,
}


class SwapsItsDials(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest:
        body = dict(http_request.body)
        body["temperature"], body["top_p"] = body["top_p"], body["temperature"]
        return attrs.evolve(http_request, body=body)


class NamesTheLimitItsOwnWay(Tern):
    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest:
        body = {"cap" if name == "max_tokens" else name: value for name, value in http_request.body.items()}
        return attrs.evolve(http_request, body=body)


def stated_problems(plugin: Any, asked: Any, request: bytes | None = ASKED, **fields: Any) -> list[str]:
    """Check one recorded request, with *asked* in the statement about its answer."""
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "tern")
    capture = attrs.evolve(answer("text", "stop", request, content="Hello."), says={"asked": asked}, **fields)
    found = check_capture(registry.mapper("tern"), capture, checks=["requests as stated"])
    return [f"{problem.path}: {problem.message}" for problem in found]


@pytest.mark.parametrize("asked", [STATED, None])
def test_a_request_is_built_as_it_is_stated(asked: Any) -> None:
    assert stated_problems(Tern(), asked) == []
    assert stated_problems(Tern(), asked, request=None) == []


def test_an_option_of_the_server_itself_may_be_stated() -> None:
    recorded = orjson.dumps({**STATED, "ponder": "off"})
    assert stated_problems(Tern(), {**STATED, "ponder": "off"}, recorded) == []
    assert stated_problems(Tern(), STATED, recorded) == [
        'request.ponder: recorded with "off", and built with nothing for what is stated as asked'
    ]


def test_an_option_beside_those_of_chat_has_its_canonical_name() -> None:
    asked = {**STATED, "n": 2, "logprobs": True}
    assert stated_problems(Tern(), asked, orjson.dumps(asked)) == []
    assert stated_problems(Tern(), asked) == [
        f"request.{name}: recorded with nothing, and built with {value} for what is stated as asked"
        for name, value in (("logprobs", "true"), ("n", "2"))
    ]


def test_a_recorded_stream_was_asked_for_as_one() -> None:
    recorded = orjson.dumps({**STATED, "stream": True, "stream_options": {"include_usage": True}})
    assert stated_problems(Tern(), STATED, recorded, stream=True) == []


@pytest.mark.parametrize(
    ("plugin", "found"),
    [
        (
            SwapsItsDials(),
            [
                "request.temperature: recorded with 0.5, and built with 1 for what is stated as asked",
                "request.top_p: recorded with 1, and built with 0.5 for what is stated as asked",
            ],
        ),
        (
            NamesTheLimitItsOwnWay(),
            [
                "request.cap: recorded with nothing, and built with 9 for what is stated as asked",
                "request.max_tokens: recorded with 9, and built with nothing for what is stated as asked",
            ],
        ),
    ],
)
def test_a_request_that_is_not_built_as_stated_is_a_problem(plugin: Any, found: list[str]) -> None:
    """No other check knows which of two recorded numbers is the temperature."""
    assert stated_problems(plugin, STATED) == found


@pytest.mark.parametrize(
    ("asked", "request_bytes", "found"),
    [
        ({"model": "m"}, ASKED, "messages: must be a list"),
        (STATED, b"not JSON", "invalid literal"),
    ],
)
def test_a_statement_that_cannot_be_compared_is_told(asked: Any, request_bytes: bytes, found: str) -> None:
    (problem,) = stated_problems(Tern(), asked, request_bytes)
    assert "as stated it cannot be compared" in problem
    assert found in problem


def test_a_request_that_the_server_refuses_is_a_problem() -> None:
    """By its rules for conversations, if the kit has them: a result without the call that asked for it."""
    found = found_in(ForgetsTheConversation(), "openai")
    assert any("call, request: the server refuses it: " in line for line in found), found


RECORDED = orjson.dumps(
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Tide?"},
            {
                "role": "assistant",
                "content": "Let me look.",
                "reasoning_content": "A tool.",
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "content": "nine", "tool_call_id": "c"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "tide", "description": "d", "parameters": {"type": "object"}},
            }
        ],
        "temperature": 0.25,
        "top_p": 0.5,
        "max_tokens": 9,
        "seed": 3,
        "stop": ["END"],
    }
)
TIDE = [answer("all", "stop", RECORDED, content="High."), *CAPTURES]


class Told(Thinks):
    """A right builder of a conversation that is recorded whole. A test plants its mistake as *change*."""

    way_back = WayBack(takes_reasoning=True, knows_failures=True)

    def __init__(self, change: Callable[[dict[str, Any]], object] = lambda body: None) -> None:
        super().__init__()
        self.change = change

    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest | None:
        if any(isinstance(turn, ChatMessage) and turn.is_error for turn in request.messages):
            http_request.body["messages"][-1]["failed"] = True
        self.change(http_request.body)
        return None


def turns_of(body: dict[str, Any], role: str) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] == role]


def renamed(name: str, other: str, *, role: str = "") -> Callable[[dict[str, Any]], object]:
    """A mistake: *name* goes under *other*, of the body or of the turns of a *role*."""

    def change(body: dict[str, Any]) -> None:
        for holder in turns_of(body, role) if role else [body]:
            if name in holder:
                holder[other] = holder.pop(name)

    return change


def says_as(role: str, other: str) -> Callable[[dict[str, Any]], object]:
    return lambda body: [message.update(role=other) for message in turns_of(body, role)]


def without(name: str, *, role: str = "") -> Callable[[dict[str, Any]], object]:
    return lambda body: [holder.pop(name, None) for holder in (turns_of(body, role) if role else [body])]


def of_tools(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda body: [change(tool["function"]) for tool in body.get("tools", ())]


def of_calls(change: Callable[[str], Any]) -> Callable[[dict[str, Any]], object]:
    """A mistake in the arguments of calls."""
    return lambda body: [
        call["function"].update(arguments=change(call["function"]["arguments"]))
        for message in turns_of(body, "assistant")
        for call in message.get("tool_calls", ())
    ]


def with_one_rule(body: dict[str, Any]) -> None:
    for message in turns_of(body, "system")[1:]:
        body["messages"].remove(message)


def refusing_names(body: dict[str, Any]) -> None:
    if isinstance(body.get("tool_choice"), dict):
        raise UnsupportedRequestError("its server takes no names", options=["tool_choice"])


def without_names(body: dict[str, Any]) -> None:
    if isinstance(body.get("tool_choice"), dict):
        del body["tool_choice"]


def with_the_last_rule(body: dict[str, Any]) -> None:
    for rule in turns_of(body, "system")[:-1]:
        body["messages"].remove(rule)


def asked_of(plugin: Any, captures: Sequence[Capture] = TIDE) -> list[str]:
    registry = Registry(installed=[])
    registry.register(plugin, "told")
    checks = ["requests say all"]
    problems = check_capture(registry.mapper("told"), captures[0], others=captures, checks=checks)
    return [problem.line for problem in problems]


class NowhereInParticular(Told):
    endpoints: ClassVar[tuple[str, ...]] = ()


class AsksElsewhere(Told):
    endpoints: ClassVar[tuple[str, ...]] = ("/v1/{model}/chat",)


@pytest.mark.parametrize("plugin", [Told(), Told(refusing_names), NowhereInParticular()])
def test_a_conversation_is_built_as_it_is_recorded(plugin: Told) -> None:
    assert asked_of(plugin) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed("seed", "dice"), "request.seed: is at dice, as in no recorded request; what recorded requests have at seed"),
        (renamed("stop", "until"), "request.stop: is at until[], as in no recorded request; what recorded requests have at stop[]"),
        (without("stop"), "request.stop: is in no body; what recorded requests have at stop[] is never built"),
        (without("reasoning_content", role="assistant"), "messages[4].reasoning: is in no body; what recorded requests have at"),
        (renamed("tool_call_id", "id", role="tool"), "messages[4].id: is at messages[].id, as in no recorded request"),
        (without("tool_choice"), "request.tool_choice: auto is asked for as none is"),
        (without_names, "request.tool_choice: NamedTool(name='look_at_kelp') is asked for as whole is"),
        (with_the_last_rule, "request.messages: one of two system texts is not in the body"),
        (without("failed", role="tool"), "request.messages[5]: failed is asked for as whole is"),
        (says_as("tool", "user"), "request.messages: recorded requests have 'tool' at messages[].role, which is never built"),
        (says_as("user", "assistant"), "request.messages: a question is asked with 'assistant' at messages[0].role, recorded with"),
        (with_one_rule, "request.messages: one of two system texts is not in the body"),
        (lambda body: body.setdefault("temperature", 0.625), "request.temperature: is in a body for which nobody asked it"),
        (of_calls(lambda text: orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()),
            "request.messages[4].arguments: they are not sent as they came"),
        (of_calls(orjson.loads), "request.messages: an object is built at messages[].tool_calls[].function.arguments"),
        (of_tools(lambda tool: tool.pop("description")), "request.tools.description: 'Looks.' is neither in the body nor"),
        (of_tools(lambda tool: tool.update(parameters={})), "request.tools.parameters: 'The depth of kelp.' is neither"),
        (of_tools(lambda tool: tool.update(parameters=str(tool["parameters"]))),
            "request.messages: a text is built at tools[].function.parameters, where recorded requests have an object"),
    ],
)  # fmt: skip
def test_what_is_built_otherwise_than_recorded_is_a_problem(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    found = asked_of(Told(change))
    assert any(message in line for line in found), found


@pytest.mark.parametrize("change", [lambda body: None, without("seed")])
def test_a_number_of_another_option_is_not_the_one_that_no_request_has(
    change: Callable[[dict[str, Any]], object],
) -> None:
    """Whether that goes under its own name or nowhere."""
    request = {**orjson.loads(RECORDED), "num_ctx": 4096}
    del request["seed"]
    captures = [answer("all", "stop", orjson.dumps(request), content="High."), *CAPTURES]
    assert not any("num_ctx" in line for line in asked_of(Told(change), captures))


@pytest.mark.parametrize(("name", "is_found"), [("dice", False), ("n_predict", True)])
def test_a_number_that_is_never_built_is_an_option_if_some_server_has_it_by_that_name(
    name: str, is_found: bool
) -> None:
    """Another one may be an option of the server's own."""
    request = orjson.loads(RECORDED)
    request[name] = request.pop("max_tokens")
    captures = [answer("all", "stop", orjson.dumps(request), content="High."), *CAPTURES[1:]]
    found = asked_of(Told(without("max_tokens")), captures)
    assert any(f"at {name} is never built" in line for line in found) is is_found


def test_a_path_that_is_none_of_the_endpoints_is_a_problem() -> None:
    assert any(
        "request.path: /v1/chat/completions is none of the endpoints" in line
        for line in asked_of(AsksElsewhere())
    )


def test_a_request_that_the_server_refused_shows_nothing() -> None:
    """Its role may be the mistake that the server names."""
    wrong = attrs.evolve(TIDE[0], request=ASKED.replace(b"user", b"robot"), status=400, case="wrong")
    registry = Registry(installed=[])
    registry.register(Told(), "told")
    checks = ["requests say all"]
    assert check_capture(registry.mapper("told"), TIDE[0], others=[*TIDE, wrong], checks=checks) == []


# What recorded requests show beyond names: their options, streams, results of tools, and answers.


def recorded_with(case: str, finish: str = "stop", *, is_stream: bool = False, **more: Any) -> Capture:
    request = {**orjson.loads(RECORDED), **more}
    one = answer(case, finish, orjson.dumps(request), content="High.")
    return attrs.evolve(one, stream=is_stream)


def result_with(**more: Any) -> list[dict[str, Any]]:
    *turns, result = orjson.loads(RECORDED)["messages"]
    return [*turns, {**result, **more}]


def of_results(**more: Any) -> Callable[[dict[str, Any]], object]:
    return lambda body: [turn.update(more) for turn in turns_of(body, "tool")]


def with_texts_as_objects(body: dict[str, Any]) -> None:
    for turn in turns_of(body, "user"):
        turn["content"] = {"value": turn["content"]}


def with_another_schema(body: dict[str, Any]) -> None:
    for tool in body.get("tools", ()):
        tool["function"]["takes"] = tool["function"].pop("parameters")


def choosing(**words: str) -> Callable[[dict[str, Any]], object]:
    def change(body: dict[str, Any]) -> None:
        if isinstance(body.get("tool_choice"), str):
            body["tool_choice"] = words.get(body["tool_choice"], body["tool_choice"])

    return change


class Drops(Told):
    """It says that it drops an option."""

    def changed(self, http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest | None:
        super().changed(http_request, request)
        if http_request.body.pop("reasoning_effort", None) is None:
            return None
        return http_request.adapted(Adaptation.dropped("reasoning_effort", "its server has none"))


SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}
WITH_SCHEMA = [{"type": "function", "function": {"name": "tide", "description": "d", "parameters": SCHEMA}}]
USAGE = {"include_usage": True}
STREAMS = [
    recorded_with(f"{case}{'_stream' * flag}", is_stream=flag, stream=flag)
    for case in ("one", "two")
    for flag in (True, False)
]


def two(**more: Any) -> list[Capture]:
    return [recorded_with(case, **more) for case in ("first", "second")]


def streaming_as(streamed: Any, whole: Any) -> Callable[[dict[str, Any]], object]:
    def change(body: dict[str, Any]) -> None:
        body["stream"] = streamed if body.get("stream") else whole
        body.pop("stream_options", None)

    return change


def with_a_trace(body: dict[str, Any]) -> None:
    body["trace"] = "on"


def with_arguments_in(key: str) -> Callable[[dict[str, Any]], object]:
    def change(body: dict[str, Any]) -> None:
        for turn in turns_of(body, "assistant"):
            for call in turn.get("tool_calls", ()):
                function = call.pop("function")
                call |= {"name": function["name"], key: orjson.loads(function["arguments"])}

    return change


def with_tools_in_rows(body: dict[str, Any]) -> None:
    """Each with its schema before its description."""
    functions = [tool["function"] for tool in body.get("tools", ())]
    body["tools"] = [[one["name"], one["parameters"], one["description"]] for one in functions]


ARGUMENTS_IN_INPUT = [
    {**turn, "tool_calls": [{"id": "call_1", "name": "look", "input": {"deep": 1}}]}
    if turn.get("tool_calls")
    else turn
    for turn in orjson.loads(RECORDED)["messages"]
]


@pytest.mark.parametrize(
    ("plugin", "recorded", "message"),
    [
        (Told(without("reasoning_effort")), (), "request.reasoning_effort: it is neither in the body nor"),
        (Told(without("response_format")), (), "request.response_format: it is neither in the body nor"),
        (Drops(), [recorded_with("e", reasoning_effort="low")], "request.reasoning_effort: it is dropped, and recorded requests"),
        (Told(), [recorded_with("k", top_k=4)], "request.top_k: is in no body; what recorded requests have at top_k is never built"),
        (Told(with_texts_as_objects), (), "request.messages: an object is built at messages[].content, where"),
        (Told(with_another_schema), [recorded_with("tool", tools=WITH_SCHEMA)],
            "tools.parameters: the object that recorded requests have at tools[].function.parameters is never built"),
        (Told(), [recorded_with("lost", messages=result_with(lost=True))],
            "request.messages[5]: what recorded requests have at messages[].lost is never built"),
        (Told(of_results(ok=False)), (), "request.messages[5]: a good result is built with False at messages[].ok"),
        (Told(of_results(is_error=True)), (), "request.messages[5]: a good result is built with True at"),
        (Told(without("stream_options")), [recorded_with("s", is_stream=True, stream=True, stream_options=USAGE)],
            "request.stream: every recorded stream is asked for with stream_options.include_usage, which is never built"),
        (Told(without("repeat_penalty")), [recorded_with("k", repetition_penalty=1.1)],
            "request.repeat_penalty: is in no body; what recorded requests have at repetition_penalty is never built"),
        (Told(streaming_as(False, True)), STREAMS, "request.stream: whole: True is at stream, where recorded ones have false"),
        (Told(streaming_as(1, 0)), STREAMS, "request.stream: streamed: 1 is at stream, where recorded ones have true"),
        (Told(), STREAMS, "streamed: True is at stream_options.include_usage, where recorded ones have nothing"),
        (Told(with_a_trace), two(), "plain: 'on' is at trace, where recorded ones have nothing"),
        (Told(with_arguments_in("args")), [recorded_with("c", messages=ARGUMENTS_IN_INPUT)],
            "request.arguments: the object that recorded requests have at messages[].tool_calls[].input is never built"),
        (Told(with_tools_in_rows), [recorded_with("r", tools=[["tide", "d", SCHEMA]])],
            "request.messages: a text is built at tools[][2], where recorded requests have an object"),
        (Told(choosing(none="required", required="none")), [recorded_with("c", "tool_calls", tool_choice="required")],
            "request.tool_choice: the request of c has what is built for none, and its answer ends as tool_calls"),
        (Told(choosing(none="required", required="none")), [recorded_with("c", tool_choice="none")],
            "request.tool_choice: the request of c has what is built for required, and its answer ends as stop"),
    ],
)  # fmt: skip
def test_what_recorded_requests_show_is_built(
    plugin: Told, recorded: Sequence[Capture], message: str
) -> None:
    found = asked_of(plugin, [*TIDE, *recorded])
    assert any(message in line for line in found), found


NAMED_BY_TOOL = [
    {key: value for key, value in turn.items() if key != "tool_call_id"} | {"of": "tide"}
    if turn["role"] == "tool"
    else turn
    for turn in orjson.loads(RECORDED)["messages"]
]


@pytest.mark.parametrize(
    ("change", "recorded", "message"),
    [
        (lambda body: body["messages"].reverse(), {}, "request.messages: 'Kelp is brown.' stands after 'Is it green?'"),
        (renamed("top_p", "top_k"), {},
            "request.top_p: is at top_k, which is the name of top_k"),
        (lambda body: None, {"top_p": 40}, "request.top_p: is at top_p, where a recorded request has 40"),
        (lambda body: None, {"max_tokens": 0.5}, "request.max_tokens: is at max_tokens, where a recorded request has 0.5"),
        (lambda body: None, {"messages": NAMED_BY_TOOL},
            "request.messages[5]: it does not name its tool, as recorded results do"),
        (renamed("reasoning_content", "musing", role="assistant"), {},
            "request.messages[4].reasoning: goes back as musing, comes as reasoning_content"),
    ],
)  # fmt: skip
def test_what_is_built_fits_what_is_recorded(
    change: Callable[[dict[str, Any]], object], recorded: dict[str, Any], message: str
) -> None:
    captures = [recorded_with("more", **recorded), *TIDE]
    found = [asked_of(plugin, captures) for plugin in (Told(change), Told(of_results(of="cut_kelp")))]
    assert any(message in line for line in found[0]), found
    assert "musing" in message or "is at" in message or not any(message in line for line in found[1])


def test_what_no_recorded_request_has_is_told() -> None:
    registry = Registry(installed=[])
    registry.register(Told(), "told")
    (said,) = [one for one in unproven(registry.mapper("told"), TIDE) if one.startswith("in a request: ")]
    assert "presence_penalty" in said
    assert "in a request: all of it" in unproven(registry.mapper("told"), [])
    assert "reasoning_effort" in said
    assert not {"seed", "reasoning", "tools.parameters"} & {*said.split(": ")[1].split(", ")}


@pytest.mark.parametrize(
    "recorded",
    [
        [recorded_with("tool", tools=WITH_SCHEMA), recorded_with("shape", shape={"form": SCHEMA})],
        [recorded_with("s", is_stream=True, stream=True, trace="t-1")],
        [recorded_with(case, is_stream=True, stream=True, stream_options=USAGE) for case in ("one", "two")],
        two(dice=7, grain=8),
        [recorded_with("good", messages=result_with(ok=True)), recorded_with("c", tool_choice="none")],
    ],
)
def test_what_else_recorded_requests_hold_is_no_problem(recorded: Sequence[Capture]) -> None:
    assert asked_of(Told(of_results(ok=True)), [*TIDE, *recorded]) == []
