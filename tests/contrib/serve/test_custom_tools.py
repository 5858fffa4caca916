"""Tools that take free text, in front of a server that knows functions alone."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from contrib_serve import asking, config_of, says
from crosswalk.service import build_http_request, read_request
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app

USER = {"role": "user", "content": "Edit it."}
PATCH = {"type": "custom", "name": "patch", "description": "Edits files.", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}  # fmt: skip
ABOUT = {"id": "c", "created": 1, "model": "m"}


def called(*arguments: str) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{number}", "type": "function", "function": {"name": "patch", "arguments": text}}
        for number, text in enumerate(arguments)
    ]


def chunks(*pieces: str) -> Answer:
    fragments: list[dict[str, Any]] = [{"index": 0, "id": "call_0", "type": "function", "function": {"name": "patch", "arguments": ""}}]  # fmt: skip
    fragments += [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    deltas: list[tuple[dict[str, Any], Any]] = [({"content": "So."}, None)]
    deltas += [({"tool_calls": [fragment]}, None) for fragment in fragments]
    deltas.append(({}, "tool_calls"))
    return Answer.of_events(
        [
            {**ABOUT, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
            for delta, end in deltas
        ]
    )  # fmt: skip


async def _posted(upstream: ReplayServer, path: str, config: str, status: int, **body: Any) -> bytes:
    app = create_app(config_of(upstream, config))
    async with app.router.lifespan_context(app), asking(app) as client:
        answer = await client.post(path, json={"model": "tiny", **body})
    assert answer.status_code == status, answer.text
    return answer.content


def ask(upstream: ReplayServer, path: str, config: str = "", *, status: int = 200, **body: Any) -> bytes:
    return asyncio.run(_posted(upstream, path, config, status, **body))


def sent(upstream: ReplayServer) -> dict[str, Any]:
    body: dict[str, Any] = upstream.requests[-1].json()
    return body


def test_a_free_form_call_reaches_a_responses_client_as_one(upstream: ReplayServer) -> None:
    upstream.add(says("So.", tool_calls=called('{"input":"*** Begin"}')))
    answer = orjson.loads(ask(upstream, "/v1/responses", input=[USER], tools=[PATCH]))
    call = answer["output"][-1]
    assert (call["type"], call["name"], call["input"]) == ("custom_tool_call", "patch", "*** Begin")
    function = sent(upstream)["tools"][0]["function"]
    assert function["parameters"]["required"] == ["input"]
    assert function["description"] == "Edits files.\n\nThe input must match this grammar (lark):\nstart: /.+/"


def test_a_streamed_one_comes_whole(upstream: ReplayServer) -> None:
    upstream.add(chunks('{"inp', 'ut":"*** Be', 'gin"}'))
    frames = (ask(upstream, "/v1/responses", input=[USER], tools=[PATCH], stream=True)).decode()
    events = [orjson.loads(line[6:]) for line in frames.splitlines() if line.startswith("data: {")]
    deltas = [event["delta"] for event in events if event["type"] == "response.custom_tool_call_input.delta"]
    assert deltas == ["*** Begin"]
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["message", "custom_tool_call"]
    assert events[-1]["response"]["status"] == "completed"


@pytest.mark.parametrize("arguments", ['{"text":"x"}', '{"input":1}', "no JSON", '{"input":"x","more":1}'])
def test_arguments_of_another_kind_stay_a_function(upstream: ReplayServer, arguments: str) -> None:
    upstream.add(says("So.", tool_calls=called(arguments)))
    answer = orjson.loads(ask(upstream, "/v1/responses", input=[USER], tools=[PATCH]))
    call = answer["output"][-1]
    assert (call["type"], call["arguments"]) == ("function_call", arguments)


def test_a_history_of_free_form_calls_goes_on(upstream: ReplayServer) -> None:
    upstream.add(says())
    history = [
        USER,
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        {"type": "custom_tool_call", "id": "ctc_2", "call_id": "c2", "name": "patch", "input": ""},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "empty"},
    ]
    ask(upstream, "/v1/responses", input=history, tools=[PATCH])
    messages = sent(upstream)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"input":"*** Begin"}'
    assert messages[3]["tool_calls"][0]["function"]["arguments"] == '{"input":""}'


def test_a_chat_client_has_them_too(upstream: ReplayServer) -> None:
    upstream.add(says("So.", tool_calls=called('{"input":"ls"}')))
    tool = {"type": "custom", "custom": {"name": "patch"}}
    call = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "pwd"}}
    history = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "/"}]  # fmt: skip
    answer = orjson.loads(ask(upstream, "/v1/chat/completions", messages=history, tools=[tool]))
    (got,) = answer["choices"][0]["message"]["tool_calls"]
    assert got == {"id": "call_0", "type": "custom", "custom": {"name": "patch", "input": "ls"}}
    assert "description" not in sent(upstream)["tools"][0]["function"]
    assert sent(upstream)["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"input":"pwd"}'


def test_a_streamed_one_is_a_function_to_a_chat_client(upstream: ReplayServer) -> None:
    """OpenAI's client cannot add up the pieces of a custom call."""
    upstream.add(chunks('{"input":"ls', '"}'))
    tool = {"type": "custom", "custom": {"name": "patch"}}
    frames = ask(upstream, "/v1/chat/completions", messages=[USER], tools=[tool], stream=True).decode()
    assert '"custom"' not in frames
    assert '"name":"patch"' in frames


def test_tools_of_a_namespace_and_legacy_functions_are_tools(upstream: ReplayServer) -> None:
    upstream.add(says())
    inner = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    space = {"type": "namespace", "name": "sea", "description": "About the sea.", "tools": [inner, PATCH]}
    ask(upstream, "/v1/responses", input=[USER], tools=[space])
    assert [tool["function"]["name"] for tool in sent(upstream)["tools"]] == ["look", "patch"]
    calls = [
        {"id": "call_9", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        *called('{"input":"x"}'),
    ]
    upstream.add(says("So.", tool_calls=calls))
    made = orjson.loads(ask(upstream, "/v1/responses", input=[USER], tools=[space]))
    spaces = [item.get("namespace") for item in made["output"] if item["type"] != "message"]
    assert spaces == ["sea", "sea"]
    upstream.add(chunks('{"input":"x"}'))
    frames = ask(upstream, "/v1/responses", input=[USER], tools=[space], stream=True).decode()
    assert frames.count('"namespace":"sea"') == 3  # the call begins, is complete, and is in the response
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "1"}
        for item in made["output"]
        if "call_id" in item
    ]
    upstream.add(says())
    ask(upstream, "/v1/responses", input=[USER, *made["output"], *results], tools=[space])
    assert "namespace" not in orjson.dumps(sent(upstream)).decode()
    upstream.add(says())
    legacy = {"name": "look", "parameters": {"type": "object"}}
    ask(upstream, "/v1/chat/completions", messages=[USER], functions=[legacy])
    assert [tool["function"]["name"] for tool in sent(upstream)["tools"]] == ["look"]


def test_a_piece_that_ends_the_answer_too(upstream: ReplayServer) -> None:
    first: dict[str, Any] = {"index": 0, "id": "call_0", "type": "function", "function": {"name": "patch", "arguments": '{"inp'}}  # fmt: skip
    last = {"index": 0, "function": {"arguments": 'ut":"x"}'}}
    choices = [
        {"index": 0, "delta": {"tool_calls": [first]}, "finish_reason": None},
        {
            "index": 0,
            "delta": {"content": "So.", "tool_calls": [last]},
            "finish_reason": "tool_calls",
            "acme": 1,
        },
    ]
    upstream.add(Answer.of_events([{**ABOUT, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]))  # fmt: skip
    frames = ask(upstream, "/v1/responses", input=[USER], tools=[PATCH], stream=True).decode()
    final = orjson.loads(frames.rpartition("data: {")[2].partition("\n")[0].join(("{", "")))
    assert {item["type"] for item in final["response"]["output"]} == {"message", "custom_tool_call"}


LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def space(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "", "tools": [*tools]}


@pytest.mark.parametrize("stream", [False, True])
def test_tools_of_one_name_in_two_namespaces_are_two_tools(upstream: ReplayServer, stream: bool) -> None:
    tools = [LOOK, space("sea", LOOK, PATCH), space("sky", LOOK)]
    function = {"name": "sky__look", "arguments": "{}"}
    call = {"id": "call_9", "type": "function", "function": function}
    if stream:
        delta = {"role": "assistant", "tool_calls": [{**call, "index": 0}]}
        about = {**ABOUT, "object": "chat.completion.chunk"}
        choices = [
            {"index": 0, "delta": delta, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
        ]
        upstream.add(Answer.of_events([{**about, "choices": [choice]} for choice in choices]))
    else:
        upstream.add(says("So.", tool_calls=[call]))
    told = ask(upstream, "/v1/responses", input=[USER], tools=tools, stream=stream)
    assert [tool["function"]["name"] for tool in sent(upstream)["tools"]] == ["look", "sea__look", "patch", "sky__look"]  # fmt: skip
    assert b"sky__look" not in told
    last = told.decode().split("data: ")[-1] if stream else told.decode()
    output = orjson.loads(last.split("\n\n")[0])["response" if stream else "output"]
    (made,) = [item for item in (output["output"] if stream else output) if item["type"] == "function_call"]
    assert (made["name"], made["namespace"]) == ("look", "sky")
    given = {"type": "function_call_output", "call_id": made["call_id"], "output": "1"}
    upstream.add(says())
    ask(upstream, "/v1/responses", input=[USER, made, given], tools=tools)
    assert [call["function"]["name"] for call in sent(upstream)["messages"][1]["tool_calls"]] == ["sky__look"]


def named(kind: str, name: str, **more: str) -> dict[str, str]:
    return {"type": kind, "name": name, **more}


def allowed(*tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": "auto", "tools": [*tools]}


CHOICES: list[tuple[Any, list[str] | None]] = [
    (named("function", "look", namespace="sky"), ["sky__look"]),
    (named("custom", "patch", namespace="sea"), ["patch"]),
    (named("custom", "patch"), ["patch"]),
    (named("function", "look"), None),
    (allowed(named("function", "look")), None),
]


@pytest.mark.parametrize(("choice", "names"), CHOICES)
def test_a_choice_follows_its_tool_out_of_its_namespace(
    upstream: ReplayServer, choice: Any, names: list[str] | None
) -> None:
    upstream.add(says())
    tools = [space("sea", LOOK, PATCH), space("sky", LOOK)]
    status = 400 if names is None else 200
    said = ask(upstream, "/v1/responses", status=status, input=[USER], tools=tools, tool_choice=choice)
    if names is None:
        error = orjson.loads(said)["error"]
        assert (error["param"], "'look' is a tool of several" in error["message"]) == ("tool_choice", True)
        return
    made = sent(upstream)["tool_choice"]
    assert [made[made["type"]]["name"]] == names
    upstream.add(says())
    choice = named("function", "look")
    ask(upstream, "/v1/responses", input=[USER], tools=[LOOK, *tools], tool_choice=choice)
    assert sent(upstream)["tool_choice"] == {"type": "function", "function": {"name": "look"}}


def test_allowed_tools_are_named_outside_their_namespaces() -> None:
    choice = allowed(named("function", "look", namespace="sea"), named("custom", "patch"))
    tools = [space("sea", LOOK, PATCH), space("sky", LOOK)]
    body = {"model": "m", "input": [USER], "tools": tools, "tool_choice": choice}
    request = build_http_request(read_request(body, "openai-responses").request, "openai")
    listed = request.body["tool_choice"]["allowed_tools"]["tools"]
    assert [one[one["type"]]["name"] for one in listed] == ["sea__look", "patch"]


@pytest.mark.parametrize(
    "tools",
    [
        [space("sea", LOOK), space("s" * 60, LOOK)],
        [space("sea", LOOK), space("sky", LOOK), {**LOOK, "name": "sky__look"}],
        [space("sea", LOOK, LOOK)],
    ],
)
def test_a_tool_that_no_name_can_tell_apart_is_refused(
    upstream: ReplayServer, tools: list[dict[str, Any]]
) -> None:
    error = orjson.loads(ask(upstream, "/v1/responses", status=400, input=[USER], tools=tools))["error"]
    assert "is the name of two tools" in error["message"]
    assert error["param"].startswith("tools[")


FINDS = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object"},
}


@pytest.mark.parametrize(
    ("tools", "kind"), [([FINDS], "tool_search_call"), ([{**FINDS, "execution": "server"}], "function_call")]
)
def test_a_search_for_tools_reaches_the_client_that_runs_it(
    upstream: ReplayServer, tools: Any, kind: str
) -> None:
    function = {"name": "tool_search_call", "arguments": '{"query":"sea"}'}
    upstream.add(says("", tool_calls=[{"id": "x", "type": "function", "function": function}]))
    config = "on_unsupported: drop"
    (item,) = orjson.loads(ask(upstream, "/v1/responses", config, input=[USER], tools=tools))["output"]
    assert (item["type"], item["call_id"], item["status"]) == (kind, "x", "completed")
    if kind == "tool_search_call":
        assert (item["execution"], item["arguments"]) == ("client", {"query": "sea"})
        assert sent(upstream)["tools"][0]["function"]["description"] == "Finds tools."
