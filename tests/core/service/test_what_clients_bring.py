"""Results, state and text of clients: the same format gets them as they came, another one as text, or the request is refused."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from crosswalk import ChatMessage, ResponseValidationError, normalize
from crosswalk.service import (
    Adaptation,
    AdaptationKind,
    ChatRequest,
    HTTPRequest,
    UnsupportedRequestError,
    build_http_request,
    read_request,
)

HI: dict[str, Any] = {"role": "user", "content": "Hi"}
OWN = {
    "openai-responses": "openai_responses", "anthropic": "anthropic", "gemini": "gemini", "openai-chat": "openai",
    "ollama-generate": "ollama",
}  # fmt: skip
OTHERS = [
    "anthropic",
    "bedrock",
    "cohere",
    "gemini",
    "mistral",
    "ollama",
    "openai",
    "openai_responses",
    "vllm",
]
PNG = "iVBORw0KGgo="


def built(form: str, body: dict[str, Any], to: str, **options: Any) -> HTTPRequest:
    model = None if "model" in body else "m"
    request = read_request(body, form, model=model).request
    return build_http_request(request, to, on_unsupported="drop", **options)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    return [leaf for inner in value for leaf in leaves(inner)] if isinstance(value, list) else [value]


def said_in(request: HTTPRequest) -> str:
    return "\n".join(leaf for leaf in leaves(request.body) if isinstance(leaf, str))


def responses(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": [HI, *items], **more}


def call(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": "i1", "call_id": "c1", "status": "completed", **more}


def output(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "call_id": "c1", **more}


SHELL = call("shell_call", action={"commands": ["ls"]})
SCREEN = call("computer_call", action={"type": "screenshot"}, pending_safety_checks=[])
APPROVAL = {"type": "mcp_approval_request", "id": "a1", "server_label": "s", "name": "f", "arguments": "{}"}
SEARCH = call("tool_search_call", execution="client", arguments={"q": "sea"})
RESULTS: dict[str, list[dict[str, Any]]] = {
    "a shell's": [SHELL, output("shell_call_output", output=[{"stdout": "marked", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}], max_output_length=9)],
    "a local shell's": [call("local_shell_call", action={"type": "exec", "command": ["ls"], "env": {}}), {"type": "local_shell_call_output", "id": "i1", "output": "marked"}],
    "a local shell's, as JSON": [call("local_shell_call", action={"type": "exec", "command": ["ls"], "env": {}}), {"type": "local_shell_call_output", "call_id": "c1", "output": '{"marked": 1}'}],
    "a patch's": [call("apply_patch_call", operation={"type": "delete_file", "path": "a"}), output("apply_patch_call_output", status="failed", output="marked")],
    "a computer's": [SCREEN, output("computer_call_output", output={"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}, acknowledged_safety_checks=[{"id": "marked"}])],
    "a computer's, by id": [SCREEN, output("computer_call_output", output={"type": "computer_screenshot", "file_id": "marked"})],
    "a search for tools": [SEARCH, output("tool_search_output", execution="client", tools=[{"type": "function", "name": "marked"}])],
    "an approval": [APPROVAL, {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": True, "reason": "marked"}],
    "an unknown tool's": [call("shell_call", action={"commands": []}), output("invented_output", found="marked")],
}  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize("more", [[], [HI]], ids=["at the end", "before a turn"])
@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("to", OTHERS)
def test_a_client_s_result_arrives_everywhere(kind: str, to: str, more: list[Any]) -> None:
    items = [*RESULTS[kind], *more]
    request = built("openai-responses", responses(*items), to)
    if to == "openai_responses":
        assert request.body == {"model": "m", "input": [HI, *items]}
        assert request.dropped == ()
    text = said_in(request)
    assert "marked" in text or kind == "a computer's"
    assert "not run" not in text
    if kind == "a computer's":
        assert PNG in text or to in ("cohere",)


FUNCTION: dict[str, Any] = {"type": "function_call", "call_id": "f1", "name": "f", "arguments": "{}"}
FUNCTION_OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "f1", "output": "well"}
LONE = {kind: items[-1] for kind, items in RESULTS.items()} | {
    "a function's": output("function_call_output", output="marked"),
    "a function's, in parts": output("function_call_output", output=[{"type": "input_text", "text": "marked"}]),
    "a custom tool's": output("custom_tool_call_output", output="marked"),
}  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(
    "before", [[], [HI], [HI, FUNCTION, FUNCTION_OUTPUT]], ids=["alone", "in a turn", "behind another's"]
)
@pytest.mark.parametrize("kind", LONE)
@pytest.mark.parametrize("to", OTHERS)
def test_a_result_without_its_call_is_told(kind: str, to: str, before: list[Any]) -> None:
    body = {"model": "m", "input": [*before, LONE[kind]]}
    request = built("openai-responses", body, to)
    if to == "openai_responses":
        assert request.body == body
        return
    text = said_in(request)
    assert "marked" in text or kind == "a computer's"
    assert "not run" not in text
    assert [(one.field, one.kind) for one in request.adaptations if one.kind is AdaptationKind.TOLD] == [
        (f"input[{len(before)}]", AdaptationKind.TOLD)
    ]


@pytest.mark.parametrize("to", ["openai_responses", "anthropic"])
def test_two_results_of_one_missing_call_are_told_each_by_itself(to: str) -> None:
    lone = [output("custom_tool_call_output", output=text, name="look") for text in ("first", "second")]
    request = built("openai-responses", responses(*lone), to)
    assert ("The output of look:\nfirst" in said_in(request)) is (to == "anthropic")
    assert all(text in said_in(request) for text in ("first", "second"))


@pytest.mark.parametrize("kind", [kind for kind in RESULTS if kind != "an unknown tool's"])
def test_a_result_in_a_conversation_of_ours_has_its_item(kind: str) -> None:
    """The client's server gets the item of the kind, also in a request that is written anew."""
    turns = read_request(responses(*RESULTS[kind]), "openai-responses").request.messages
    sent = build_http_request(ChatRequest(turns, model="m"), "openai_responses").body["input"][-1]
    wanted = {name: value for name, value in RESULTS[kind][-1].items() if name != "id"}
    assert sent == {**wanted, **({} if "approval" in kind else {"call_id": "c1"})}


@pytest.mark.parametrize(
    ("item", "why"),
    [(SEARCH, "a search for tools is answered by"), (APPROVAL, "an approval is answered by"), (SCREEN, "by an image")],
)  # fmt: skip
def test_a_result_of_another_shape_is_refused(item: dict[str, Any], why: str) -> None:
    turns = read_request(responses(item, HI), "openai-responses").request.messages[:2]
    result = ChatMessage.tool_result(item.get("call_id", "a1"), "well")
    with pytest.raises(UnsupportedRequestError, match=why):
        build_http_request(ChatRequest([*turns, result], model="m"), "openai_responses")


def test_a_search_that_was_not_run_has_found_nothing() -> None:
    turns = read_request(responses(SEARCH, HI), "openai-responses").request.messages
    *_, sent, _ = build_http_request(ChatRequest(turns, model="m"), "openai_responses").body["input"]
    assert sent == {
        "type": "tool_search_output",
        "call_id": "c1",
        "execution": "client",
        "status": "incomplete",
        "tools": [],
    }


# ------------------------------------------------------------------------------------ the same format

UNUSUAL = {
    "a call without a result": ("openai-responses", responses(SHELL)),
    "a result without a call": ("openai-responses", responses(output("function_call_output", output="x"))),
    "a picture by id alone": ("openai-responses", {"model": "m", "input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
    "a document by id alone": ("anthropic", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}]}),
    "a part without a name": ("gemini", {"contents": [{"role": "user", "parts": [{"invented": {"a": 1}}]}]}),
    "a prompt of the server's": ("openai-responses", {"model": "m", "prompt": {"id": "p"}}),
    "two results": ("openai-responses", responses({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}, *[output("function_call_output", output="x")] * 2)),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSUAL)
@pytest.mark.parametrize("option", [None, "temperature"])
def test_the_same_format_goes_on_as_it_came(case: str, option: str | None) -> None:
    """Its server checks it. A change of the gateway, such as a default, is the only change."""
    form, body = UNUSUAL[case]
    request: ChatRequest = read_request(body, form, model=None if "model" in body else "m").request
    request = attrs.evolve(request, **({} if option is None else {option: 0.5}))
    sent = build_http_request(request, OWN[form]).body
    assert {name: sent[name] for name in body} == body
    assert ("0.5" in str(sent)) is (option is not None)


EARLIER = (
    ChatMessage.user("Go."),
    normalize(
        {"id": "resp_1", "object": "response", "status": "completed", "model": "m",
         "output": [{"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}]},
        "openai_responses",
    ),
)  # fmt: skip


def test_a_result_follows_the_call_of_an_earlier_turn() -> None:
    """The gateway puts the turns before it that it stores."""
    incoming = read_request(
        {"model": "m", "input": [output("function_call_output", output="x")]}, "openai-responses"
    )
    request = attrs.evolve(incoming.request, messages=(*EARLIER, *incoming.request.messages))
    sent = build_http_request(request, "openai_responses").body["input"]
    assert [item["type"] for item in sent] == ["message", "function_call", "function_call_output"]
    elsewhere = build_http_request(request, "openai")
    assert elsewhere.body["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "x"}
    assert AdaptationKind.TOLD not in [one.kind for one in elsewhere.adaptations]


ODD = {"type": "additional_tools", "role": "developer", "tools": []}


def test_the_client_s_items_stay_beside_turns_that_were_added() -> None:
    before, after = ChatMessage.user("Before."), ChatMessage.user("After.")
    incoming = read_request(responses(ODD), "openai-responses").request

    def sent(*messages: Any) -> list[Any]:
        request = attrs.evolve(incoming, messages=messages)
        items: list[Any] = build_http_request(request, "openai_responses", on_unsupported="drop").body[
            "input"
        ]
        return items

    assert sent(before, *incoming.messages)[1:] == [HI, ODD]
    assert sent(*incoming.messages, after)[:2] == [HI, ODD]
    assert sent(before) == [{"type": "message", "role": "user", "content": "Before."}, ODD]
    assert sent(before, after, before)[-1]["content"] == "Before."


def test_a_turn_that_was_changed_is_the_only_change() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "Hi", "invented": 1}]}
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [marked, {"role": "assistant", "content": "Yes?"}, marked],
    }
    request = read_request(body, "anthropic").request
    request = attrs.evolve(request, messages=(*request.messages[:2], ChatMessage.user("Secret.")))
    sent = build_http_request(request, "anthropic").body["messages"]
    assert sent == [*body["messages"][:2], {"role": "user", "content": [{"type": "text", "text": "Secret."}]}]  # type: ignore[index]


# ------------------------------------------------------------------------------------ state

STATE: list[tuple[str, dict[str, Any], str]] = [
    ("openai-responses", responses(conversation="c"), "conversation"),
    ("openai-responses", responses(conversation={"id": "c"}), "conversation"),
    ("openai-responses", responses(previous_response_id="r"), "previous_response_id"),
    ("openai-responses", {"model": "m", "prompt": {"id": "p"}}, "prompt"),
    ("openai-responses", responses({"type": "item_reference", "id": "rs"}), "input[1]"),
    ("openai-responses", {"model": "m", "input": [{"id": "rs"}]}, "input[0]"),
    ("openai-responses", responses({"type": None, "id": "rs"}), "input[1]"),
    ("openai-responses", responses(continuation_token="c"), "continuation_token"),
    ("openai-responses", responses(tools=[{"type": "code_interpreter", "container": "c"}]), "tools[0].container"),
    ("openai-responses", responses(tools=[{"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}}]), "tools[0].environment"),
    ("openai-responses", responses({"type": "additional_tools", "role": "developer", "tools": [{"type": "code_interpreter", "container": "c"}]}), "input[1].tools[0].container"),
    ("openai-responses", responses({"type": "additional_tools", "role": "developer", "tools": [{"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}}]}), "input[1].tools[0].environment"),
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI], "continuation_token": "c"}, "continuation_token"),
    ("openai-chat", {"model": "m", "messages": [HI], "continuation_token": "c"}, "continuation_token"),
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI], "thread": {"type": "create"}}, "thread"),
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI], "container": "c"}, "container"),
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI], "container": {"id": "c"}}, "container"),
    ("gemini", {"contents": [{"parts": [{"text": "Hi"}]}], "cachedContent": "c"}, "cachedContent"),
    ("gemini", {"contents": [{"parts": [{"text": "Hi"}]}], "cached_content": "c"}, "cached_content"),
    ("gemini", {"contents": [{"parts": [{"text": "Hi"}]}], "continuationToken": "c"}, "continuationToken"),
    ("openai-chat", {"model": "m", "messages": [HI, {"role": "assistant", "audio": {"id": "a"}}, HI]}, "messages[1].audio"),
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(("form", "body", "path"), STATE)
@pytest.mark.parametrize("to", ["openai_responses", "anthropic", "gemini", "openai", "ollama", "bedrock"])
def test_state_goes_to_its_server_or_refuses_the_request(
    form: str, body: dict[str, Any], path: str, to: str
) -> None:
    if to == OWN[form]:
        request = built(form, body, to)
        assert {name: request.body[name] for name in body} == body
        assert request.dropped == ()
        return
    with pytest.raises(UnsupportedRequestError, match="it names what a server of") as caught:
        built(form, body, to)
    assert caught.value.options == (path,)
    assert (caught.value.provider, path in str(caught.value)) == (to, True)


def test_another_server_of_the_format_gets_it() -> None:
    _, body, _ = STATE[-1]
    assert built("openai-chat", body, "vllm").body["messages"][1]["audio"] == {"id": "a"}


def test_state_without_its_place_refuses_the_request() -> None:
    request = read_request(STATE[4][1], "openai-responses").request
    request = attrs.evolve(request, messages=[ChatMessage.user("Other."), ChatMessage.user("words")])
    with pytest.raises(UnsupportedRequestError, match=r"it cannot express input\[1\]"):
        build_http_request(request, "openai_responses", on_unsupported="drop")


@pytest.mark.parametrize("body", [{"model": "m"}, {"model": "m", "input": []}])
def test_a_request_that_says_nothing(body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="input: must not be empty"):
        read_request(body, "openai-responses")


# ------------------------------------------------------------------------------------ told as text

NO_CALL = [
    ({"type": "function_call_output", "name": "goal_objective", "namespace": "agent", "output": "Win."}, "The output of agent.goal_objective:\nWin."),
    ({"type": "custom_tool_call_output", "name": "sql", "output": [{"type": "input_text", "text": "1"}]}, "The output of sql:"),
    ({"type": "shell_call_output", "output": [{"stdout": "a"}]}, 'The output of shell_call_output:\n{"output":[{"stdout":"a"}]}'),
]  # fmt: skip


@pytest.mark.parametrize(("item", "text"), NO_CALL)
@pytest.mark.parametrize("to", OTHERS)
def test_an_output_without_a_call_is_text_with_its_name(item: dict[str, Any], text: str, to: str) -> None:
    request = built("openai-responses", responses(item, HI), to)
    if to == "openai_responses":
        assert request.body["input"] == [HI, item, HI]
        assert request.dropped == ()
    else:
        assert text in said_in(request)
        assert Adaptation("input[1]", AdaptationKind.TOLD, "it is sent as text") in request.adaptations


def document(kind: str = "document", **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


TEXT = {"type": "text", "text": "The sky"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
PLAIN = {"type": "text", "media_type": "text/plain", "data": "The sky"}
AS_TEXT = [
    (document(title="Green", source=PLAIN), ["Green\n\nThe sky"]),
    (document(title="Green", context="old", source={"type": "content", "content": [TEXT]}), ["Green\nold\n\nThe sky"]),
    (document(source={"type": "content", "content": "The sky"}), ["The sky"]),
    (document(title="Green", source={"type": "content", "content": [IMAGE]}), ["Green", PNG]),
    (document("search_result", title="Green", source="https://x", content=[TEXT, TEXT]), ["Green", "https://x", "The sky"]),
    (document("tool_reference", tool_name="look"), ["look"]),
]  # fmt: skip


@pytest.mark.parametrize(("block", "texts"), AS_TEXT)
@pytest.mark.parametrize("is_result", [False, True])
@pytest.mark.parametrize("to", ["anthropic", "openai", "openai_responses", "gemini", "bedrock", "mistral"])
def test_text_of_every_kind_arrives_with_its_title(
    block: Any, texts: list[str], is_result: bool, to: str
) -> None:
    turns: list[dict[str, Any]] = [HI, {"role": "user", "content": [block]}]
    if is_result:
        turns[1:] = [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [block]}]},
        ]
    request = built("anthropic", {"model": "m", "max_tokens": 9, "messages": turns}, to)
    if to == "anthropic":
        assert request.body["messages"] == turns
    else:
        assert all(text in said_in(request) for text in texts)
        assert [dropped for dropped in request.dropped if dropped.refuses] == []


@pytest.mark.parametrize("to", ["openai", "openai_responses", "gemini", "bedrock", "mistral"])
def test_what_becomes_of_a_part_is_named_at_the_clients_place(to: str) -> None:
    """A system prompt is a message here, and not in the client's list."""
    found = document("search_result", title="Green", source="https://x", content=[TEXT, IMAGE])
    file = document(source=PDF, context="old", citations={"enabled": True})
    turn = {"role": "user", "content": [found, file]}
    request = built(
        "anthropic", {"model": "m", "max_tokens": 9, "system": "Be brief.", "messages": [turn]}, to
    )
    said = said_in(request)
    assert "Green\nhttps://x\n\nThe sky" in said
    assert PNG in said
    named = {one.field: one.kind.value for one in request.adaptations}
    assert named["messages[0].content[0]"] == "told"
    about = {field for field in named if field.startswith("messages[0].content[1].")}
    places = {"messages[0].content[1].context", "messages[0].content[1].citations"}
    assert about == (set() if to == "bedrock" else places)


@pytest.mark.parametrize(("data", "is_text"), [("VGhlIHNreQ==", True), ("/w==", False)])
@pytest.mark.parametrize("form", ["openai-chat", "openai-responses", "gemini"])
def test_a_file_of_text_is_a_document_of_text(form: str, data: str, *, is_text: bool) -> None:
    """One that is no UTF-8 is refused: Anthropic takes no other text."""
    url = f"data:text/csv;base64,{data}"
    file = {"filename": "a.csv", "file_data": url}
    parts = {
        "openai-chat": {"type": "file", "file": file},
        "openai-responses": {"type": "input_file", **file},
        "gemini": {"inlineData": {"mimeType": "text/csv", "data": data, "displayName": "a.csv"}},
    }
    turn: dict[str, Any] = {"role": "user", "content": [parts[form]]}
    body: dict[str, Any] = {"model": "m", "input" if form == "openai-responses" else "messages": [turn]}
    if form == "gemini":
        body = {"contents": [{"role": "user", "parts": [parts[form]]}]}
    if not is_text:
        with pytest.raises(UnsupportedRequestError, match="of type text/csv"):
            built(form, body, "anthropic")
        return
    (sent,) = built(form, body, "anthropic").body["messages"]
    assert sent["content"] == [{"type": "document", "title": "a.csv", "source": PLAIN}]


@pytest.mark.parametrize("kind", ["application/json", "application/xml", "application/json; charset=utf-8"])
@pytest.mark.parametrize(
    ("to", "told"),
    [("anthropic", '{"sky": 9}'), ("ollama", '{"sky": 9}'), ("cohere", '{"sky": 9}'), ("bedrock", "txt")],
)
def test_a_file_of_data_in_words_is_told_as_text(kind: str, to: str, told: str) -> None:
    file = {"type": "input_file", "filename": "a", "file_data": f"data:{kind};base64,eyJza3kiOiA5fQ=="}
    body = {"model": "m", "input": [{"role": "user", "content": [file]}]}
    assert told in said_in(built("openai-responses", body, to))


def test_a_document_that_says_nothing_is_no_part() -> None:
    empty = document(source={**PLAIN, "data": ""})
    request = built(
        "anthropic",
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [empty, TEXT]}]},
        "openai",
    )
    assert request.body["messages"] == [{"role": "user", "content": [TEXT]}]


KEPT = [
    ("openai-responses", {"model": "m", "input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}, HI]}, "input[0].content[0]"),
    ("openai-responses", responses({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}, output("function_call_output", output=[{"type": "input_image", "file_id": "f"}])), "input[2].output[0]"),
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}, {"type": "text", "text": "Hi"}]}]}, "messages[0].content[0]"),
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}]}, "messages[0].content[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "body", "path"), KEPT)
@pytest.mark.parametrize("to", ["openai", "mistral", "cohere"])
def test_a_file_that_another_server_keeps_refuses_the_request(
    form: str, body: Any, path: str, to: str
) -> None:
    with pytest.raises(UnsupportedRequestError, match="names what a server of") as error:
        built(form, body, to)
    assert error.value.options == (path,)


UNKNOWN = [
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "invented", "by": "us"}]}]}, '{"type":"invented","by":"us"}', "messages[0].content[0]"),
    ("anthropic", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "mcp_tool_listing", "tools": [{"name": "f"}]}]}]}, '{"type":"mcp_tool_listing","tools":[{"name":"f"}]}', "messages[0].content[0]"),
    ("gemini", {"contents": [{"role": "user", "parts": [{"invented": 1}]}]}, '{"invented":1}', "contents[0].parts[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "body", "text", "path"), UNKNOWN)
@pytest.mark.parametrize("to", ["openai", "mistral", "cohere"])
def test_content_that_only_its_format_has_becomes_json(
    form: str, body: Any, text: str, path: str, to: str
) -> None:
    request = built(form, body, to)
    assert text in said_in(request)
    assert Adaptation(path, AdaptationKind.TOLD, "it is sent as text") in request.adaptations
    assert built(form, body, OWN[form]).dropped == ()


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("openai-responses", {"model": "m", "input": [{"role": "user", "content": []}, ODD]}),
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "tool_addition", "tool": {}}]}]}),
    ],
)  # fmt: skip
def test_a_conversation_of_which_nothing_is_left_is_refused(form: str, body: Any) -> None:
    with pytest.raises(UnsupportedRequestError, match="no content"):
        built(form, body, "openai")


def test_a_message_of_declarations_is_left_out() -> None:
    added = {"role": "user", "content": [{"type": "tool_addition", "tool": {}}]}
    messages = [
        HI,
        added,
        {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
    ]
    request = built("anthropic", {"model": "m", "max_tokens": 9, "messages": messages}, "openai")
    assert [turn["content"] for turn in request.body["messages"]] == [
        "Hi",
        [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}],
    ]
    assert [one.field for one in request.dropped if one.refuses] == ["messages[1].content[0]"]


def test_a_system_message_of_which_nothing_is_read_is_left_out() -> None:
    added = {"role": "system", "content": [{"type": "tool_addition", "tool": {}}]}
    request = built("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI, added]}, "openai")
    assert request.body["messages"] == [HI]
    assert [dropped.field for dropped in request.dropped] == ["messages[1].content[0]"]


# ------------------------------------------------------------------------------------ what servers did

DID: list[tuple[str, Any, list[str]]] = [
    ("openai-responses", [{"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "sea"}}], ["web_search_call", "sea"]),
    ("openai-responses", [{"type": "mcp_call", "id": "w", "server_label": "s", "name": "n", "arguments": '{"a":1}', "output": "42"}], ["mcp_call", '{"a":1}', "42"]),
    ("openai-responses", [{"type": "code_interpreter_call", "id": "w", "status": "completed", "container_id": "c", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]}], ["1+1", "logs"]),
    ("openai-responses", [call("shell_call", action={"commands": ["ls"]}, environment={"type": "container_reference", "container_id": "k"}), output("shell_call_output", output=[{"stdout": "a.txt"}])], ["ls", "a.txt"]),
    ("openai-responses", [call("program", code="1+1", fingerprint="zz"), output("program_output", result="two")], ["1+1", "two"]),
    ("openai-responses", [{**SEARCH, "execution": "server", "call_id": None}, output("tool_search_output", execution="server", tools=[{"name": "look"}])], ["sea", "look"]),
    ("anthropic", [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "sea"}}, {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "title": "Salt", "url": "u", "encrypted_content": "zz"}]}], ["sea", "Salt"]),
    ("gemini", [{"executableCode": {"language": "PYTHON", "code": "1+1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "two"}}], ["1+1", "two"]),
]  # fmt: skip


@pytest.mark.parametrize(("form", "parts", "words"), DID)
@pytest.mark.parametrize("to", OTHERS)
def test_what_a_server_s_tool_did_alone_is_told(form: str, parts: Any, words: list[str], to: str) -> None:
    body: dict[str, Any] = responses(*parts, HI)
    if form == "anthropic":
        body = {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": parts}, HI]}
    if form == "gemini":
        turn = {"role": "user", "parts": [{"text": "Hi"}]}
        body = {"contents": [turn, {"role": "model", "parts": parts}, turn]}
    request = built(form, body, to)
    text = said_in(request)
    assert all(word in text for word in words)
    assert "not run" not in text
    if to != OWN[form]:
        assert "zz" not in text  # only its owner can read it
        assert any("it is sent as text" in one.reason for one in request.adaptations)


MCP_CALL = {
    "type": "mcp_call",
    "id": "w",
    "server_label": "s",
    "name": "n",
    "arguments": '{"a":1}',
    "status": "completed",
}
SO = {
    "type": "message",
    "role": "assistant",
    "id": "x",
    "status": "completed",
    "content": [{"type": "output_text", "text": "So.", "annotations": []}],
}
MCP: list[tuple[str, Any, list[str]]] = [
    ("openai-responses", [{**MCP_CALL, "output": "marked"}, SO], ["mcp_call", '{"a":1}', '"output":"marked"']),
    ("openai-responses", [{**MCP_CALL, "output": None, "error": {"type": "http_error", "code": 500, "message": "gone"}}, SO], ['"message":"gone"']),
    ("openai-responses", [{**MCP_CALL, "output": "marked"}, FUNCTION, FUNCTION_OUTPUT], ["marked"]),
    ("anthropic", [{"type": "mcp_tool_use", "id": "u", "name": "n", "server_name": "s", "input": {"a": 1}}, {"type": "mcp_tool_result", "tool_use_id": "u", "is_error": False, "content": [{"type": "text", "text": "marked"}]}, {"type": "text", "text": "So."}], ['{"a":1}', "marked"]),
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("form", "parts", "words"), MCP, ids=["gave", "failed", "before a call", "anthropic"]
)
@pytest.mark.parametrize("to", OTHERS)
def test_what_an_mcp_server_gave_is_content(form: str, parts: Any, words: list[str], to: str) -> None:
    """It is told in words, before what the model says of it, and none of that is named as state."""
    body: dict[str, Any] = responses(*parts, HI)
    if form == "anthropic":
        body = {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": parts}, HI]}
    request = build_http_request(read_request(body, form).request, to, on_unsupported="raise")
    if to == OWN[form]:
        assert request.dropped == ()
        return
    text = said_in(request)
    assert all(word in text for word in words)
    assert text.find(words[-1]) < text.find("So.") or "So." not in text
    assert any("MCP server: it is sent as text" in one.reason for one in request.adaptations)
    (state,) = [one.reason for one in request.dropped]
    assert set(state.partition(": ")[2].split(", ")) <= {"id", "status", "tool_use_id"}


@pytest.mark.parametrize("to", [to for to in OTHERS if to != "openai_responses"])
def test_an_answer_that_only_its_server_can_read_is_no_empty_turn(to: str) -> None:
    item = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "zz"}
    text = said_in(built("openai-responses", responses(item, HI), to))
    assert "(no answer)" in text
    assert "zz" not in text


@pytest.mark.parametrize("to", [to for to in OTHERS if to != "openai_responses"])
def test_what_stands_for_a_conversation_is_never_left_out(to: str) -> None:
    """Without it the model would not know what was said, so it is refused with ``drop``, too."""
    item = {"type": "compaction", "id": "r", "encrypted_content": "zz"}
    with pytest.raises(UnsupportedRequestError, match="compaction: only its own server"):
        built("openai-responses", responses(item, HI), to)
    assert built("openai-responses", responses(item, HI), "openai_responses").body["input"] == [HI, item, HI]


LATER = {"type": "additional_tools", "role": "developer"}
LOOKING: dict[str, Any] = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {}},
}
DEFINED = {"name": "look", "input_schema": {"type": "object", "properties": {}}}


def defining(**definition: Any) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}


@pytest.mark.parametrize("to", ["openai", "gemini", "cohere"])
@pytest.mark.parametrize(
    ("form", "body", "is_declared"),
    [
        ("openai-responses", responses({**LATER, "tools": [LOOKING]}, HI), True),
        ("openai-responses", responses({**LATER, "tools": [{"type": "namespace", "name": "sea", "tools": [LOOKING]}]}, HI), True),
        # what is no function of the client's is named as a whole
        ("openai-responses", responses({**LATER, "tools": [LOOKING, {"type": "web_search"}]}, HI), False),
        ("openai-responses", responses({**LATER, "tools": [LOOKING, {"type": "apply_patch"}]}, HI), False),
        ("openai-responses", responses({**LATER, "tools": [LOOKING, {"type": "computer"}]}, HI), False),
        # a tool that may run in a container of the server's, and does not, is a declaration
        ("openai-responses", responses({**LATER, "tools": [LOOKING, {"type": "shell"}]}, HI), False),
        ("openai-responses", responses({**LATER, "tools": [LOOKING, {"type": "shell", "environment": {"type": "local"}}]}, HI), False),
        ("openai-responses", responses({**LATER, "tools": [{"type": "namespace", "name": "sea", "tools": [{"type": "shell"}, LOOKING]}]}, HI), False),
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [defining(**DEFINED), {"type": "text", "text": "Hi"}]}]}, True),
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "system", "content": [defining(type="custom", **DEFINED)]}]}, True),
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "system", "content": [defining(**DEFINED, allowed_callers=["direct"])]}]}, False),
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "system", "content": [defining(type="bash_20250124", name="bash")]}]}, False),
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "system", "content": [defining(input_schema={})]}]}, False),
    ],
)  # fmt: skip
def test_tools_that_a_conversation_adds_are_declared(
    form: str, body: Any, is_declared: bool, to: str
) -> None:
    request = built(form, body, to)
    assert ("look" in str(request.body.get("tools"))) is is_declared
    assert any(one.refuses for one in request.dropped) is not is_declared
    same = built(form, body, OWN[form]).body
    assert "tools" not in same


def test_tools_that_are_declared_and_added_are_declared_once() -> None:
    added = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}}
    turns = [HI, {"role": "system", "content": [added, defining(**DEFINED)]}]
    body = {"model": "m", "max_tokens": 9, "tools": [{**DEFINED, "defer_loading": True}], "messages": turns}
    request = built("anthropic", body, "openai")
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["look"]
    assert [(one.field, one.refuses) for one in request.dropped] == [
        ("tools[0].defer_loading", False),
        ("messages[1].content[0]", False),
        ("messages[1].content[1]", False),
    ]


SUMMARY = {"type": "compaction", "content": "They met in Oslo."}


@pytest.mark.parametrize(
    ("blocks", "others"),
    [
        ([SUMMARY], []),
        ([{**SUMMARY, "encrypted_content": "zz"}, {"type": "text", "text": "Nine."}], ["Nine."]),
        ([{"type": "text", "text": "Nine."}, {"type": "compaction", "content": None}, SUMMARY], ["Nine."]),
    ],
)
@pytest.mark.parametrize("to", [to for to in OTHERS if to != "anthropic"])
def test_a_summary_of_the_conversation_is_told(blocks: list[Any], others: list[str], to: str) -> None:
    turns = [HI, {"role": "assistant", "content": blocks}, HI]
    request = built("anthropic", {"model": "m", "max_tokens": 9, "messages": turns}, to)
    text = said_in(request)
    assert text.count("They met in Oslo.") == 1
    assert all(word in text for word in others)
    assert "zz" not in text
    assert "(no answer)" not in text
    why = "a summary of the conversation: it is sent as text"
    assert Adaptation("messages[1]", AdaptationKind.TOLD, why) in [
        attrs.evolve(one, field="messages[1]") for one in request.adaptations
    ]


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("openai-responses", responses({"type": "compaction", "id": "r", "encrypted_content": "zz"}, HI)),
        ("openai-responses", responses({"type": "compaction", "encrypted_content": "zz"}, {"role": "assistant", "content": "Nine."}, HI)),
        ("anthropic", {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": [{"type": "compaction", "content": None, "encrypted_content": "zz"}]}, HI]}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("to", ["gemini", "openai"])
def test_a_summary_that_only_its_server_can_read_is_refused(form: str, body: Any, to: str) -> None:
    with pytest.raises(UnsupportedRequestError, match="compaction: only its own server"):
        build_http_request(read_request(body, form).request, to)


CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
SILENT: dict[str, Any] = {"role": "assistant", "content": ""}
COMPACTED = {"role": "assistant", "content": [{"type": "compaction", "content": "the sea"}]}


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages)}


@pytest.mark.parametrize(
    ("form", "body", "to", "sentences"),
    [
        (
            "anthropic",
            chat(HI, COMPACTED, HI) | {"max_tokens": 9},
            "openai",
            {"messages[1].content": "Summary of the conversation so far:"},
        ),
        (
            "anthropic",
            chat(HI, COMPACTED, HI) | {"max_tokens": 9},
            "bedrock",
            {"messages[1].content[0].text": "Summary of the conversation so far:"},
        ),
        ("openai-chat", chat(HI, SILENT, HI), "anthropic", {"messages[1].content[0].text": "(no answer)"}),
        *(
            (
                "openai-chat",
                chat(HI, {**SILENT, "content": "Hello"}, {"role": "user", "content": blank}),
                to,
                {"messages[2].content[0].text": "(The user says nothing.)"},
            )
            for to, blank in (("anthropic", "  \n"), ("bedrock", "\t"), ("anthropic", ""))
        ),
        ("openai-chat", chat(HI, SILENT, HI), "gemini", {"contents[1].parts[0].text": "(no answer)"}),
        ("openai-chat", chat(HI, SILENT, HI), "mistral", {"messages[1].content": "(no answer)"}),
        (
            "openai-chat",
            chat({**SILENT, "content": "Hello"}, HI),
            "bedrock",
            {"messages[0].content[0].text": "(The conversation begins.)"},
        ),
        (
            "openai-chat",
            chat(HI, CALLED, HI),
            "openai_responses",
            {"input[2].output": "Error: not run: the conversation went on"},
        ),
        (
            "openai-responses",
            responses({"type": "function_call_output", "name": "goal", "namespace": "agent", "output": "x"}),
            "cohere",
            {"messages[1].content": "The output of agent.goal:"},
        ),
        (
            "anthropic",
            {
                "model": "m",
                "max_tokens": 9,
                "messages": [
                    HI,
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}],
                    },
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "c1",
                                "content": [
                                    {
                                        "type": "image",
                                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                                    }
                                ],
                            }
                        ],
                    },
                ],
            },
            "openai",
            {
                "messages[2].content": "The result is shown in the next message of the user.",
                "messages[3].content[0].text": "What call c1 gave:",
            },
        ),
    ],
)
def test_a_sentence_that_nobody_said_is_named(
    form: str, body: dict[str, Any], to: str, sentences: dict[str, str]
) -> None:
    request = built(form, body, to)
    added = added_to(request)
    assert added == sentences
    assert {at(request.body, place).partition("\n")[0] for place in added} == {*added.values()}


def added_to(request: HTTPRequest) -> dict[str, Any]:
    """The sentences that nobody has said, by their places."""
    return {one.field: one.sent for one in request.adaptations if one.kind == "added"}


def at(body: Any, place: str) -> Any:
    for step in re.findall(r"\w+", place):
        body = body[int(step) if step.isdecimal() else step]
    return body


def test_a_sentence_that_the_client_said_is_its_own() -> None:
    said = chat(HI, {**SILENT, "content": "(no answer)"}, HI)
    assert added_to(built("openai-chat", said, "cohere")) == {}
    mine = ChatRequest([ChatMessage.user("Hi"), ChatMessage.assistant("(no answer)")], model="m")
    assert added_to(build_http_request(mine, "cohere")) == {}


# ------------------------------------------------------------------------------------ tools that a client searches for

LOOKUP = {
    "type": "function",
    "name": "look",
    "description": "See.",
    "parameters": {"type": "object", "properties": {}},
}
FINDS: dict[str, Any] = {"type": "tool_search", "execution": "client", "description": "Find.", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}  # fmt: skip
DIVE = {"type": "custom", "name": "dive"}


def found(*tools: Any, **more: Any) -> list[dict[str, Any]]:
    return [SEARCH, output("tool_search_output", execution="client", tools=[*tools], **more), HI]


def declared(request: HTTPRequest) -> list[str]:
    return [tool[tool["type"]]["name"] for tool in request.body.get("tools", ())]


@pytest.mark.parametrize(
    ("tools", "items", "names"),
    [
        ([FINDS], [], ["tool_search_call"]),
        ([FINDS], found(LOOKUP), ["tool_search_call", "look"]),
        ([FINDS], found({"type": "namespace", "name": "sea", "description": "Sea.", "tools": [LOOKUP]}, DIVE), ["tool_search_call", "look", "dive"]),
        ([FINDS, {**LOOKUP, "defer_loading": True}], found(LOOKUP), ["look", "tool_search_call"]),
        ([FINDS], [*found(LOOKUP), *found(LOOKUP, DIVE)], ["tool_search_call", "look", "dive"]),
        # what its own server would check, and a search that the server runs
        ([FINDS], found({"type": "function"}, LOOKUP), ["tool_search_call"]),
        ([{**FINDS, "execution": "server"}], [], []),
    ],
)  # fmt: skip
def test_what_a_client_finds_is_declared_to_other_servers(
    tools: list[Any], items: list[Any], names: list[str]
) -> None:
    body = responses(*items, tools=tools)
    request = built("openai-responses", body, "openai")
    assert declared(request) == names
    lost = {one.field for one in request.dropped}
    assert ("tools[0]" in lost) is (tools[0]["execution"] == "server")
    assert built("openai-responses", body, "openai_responses").body["tools"] == tools


def test_a_search_for_tools_is_described_as_the_client_says() -> None:
    tool = built("openai-responses", responses(tools=[FINDS]), "anthropic").body["tools"][0]
    about = {"name": "tool_search_call", "description": "Find.", "input_schema": FINDS["parameters"]}
    assert tool == about


def test_found_tools_have_their_namespace_and_their_kind() -> None:
    space = {"type": "namespace", "name": "sea", "description": "Sea.", "tools": [LOOKUP, DIVE]}
    incoming = read_request(responses(*found(space), tools=[FINDS]), "openai-responses")
    assert incoming.wants.namespaces == {"look": ("sea", "look"), "dive": ("sea", "dive")}
    assert incoming.custom_tools == {"dive"}


# ------------------------------------------------------------------------------------ parts of unknown types

HOLOGRAM = {"type": "hologram", "beam": "marked"}
WORD = {"type": "text", "text": "Word"}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED_BEFORE = [HI, {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}]
SPEAKERS: dict[str, Any] = {
    "the model": lambda parts: [HI, {"role": "assistant", "content": parts}, HI],
    "the model, before a call": lambda parts: [HI, {"role": "assistant", "content": parts, "tool_calls": [CHAT_CALL]}, {"role": "tool", "tool_call_id": "c1", "content": "x"}],
    "the user": lambda parts: [{"role": "user", "content": parts}],
    "the system": lambda parts: [{"role": "system", "content": parts}, HI],
    "a tool": lambda parts: [*CALLED_BEFORE, {"role": "tool", "tool_call_id": "c1", "content": parts}],
}  # fmt: skip
ASKED_FOR_CHAT = ["vllm", "deepseek", "llamacpp", "groq"]


def said_by_client(speaker: str, parts: list[Any]) -> dict[str, Any]:
    return {"model": "m", "messages": SPEAKERS[speaker](parts)}


@pytest.mark.untraced
@pytest.mark.parametrize(
    "parts", [[HOLOGRAM], [WORD, HOLOGRAM], [HOLOGRAM, WORD]], ids=["alone", "last", "first"]
)
@pytest.mark.parametrize("speaker", SPEAKERS)
@pytest.mark.parametrize("to", [*OTHERS, *ASKED_FOR_CHAT[1:]])
def test_a_part_of_an_unknown_type_arrives_everywhere(to: str, speaker: str, parts: list[Any]) -> None:
    """A server of the client's form gets the part, any other its JSON as text."""
    body = said_by_client(speaker, parts)
    request = built("openai-chat", body, to)
    told = [one.field for one in request.adaptations if one.kind is AdaptationKind.TOLD]
    assert request.dropped == ()
    if to in ("openai", *ASKED_FOR_CHAT):
        contents = [message["content"] for message in request.body["messages"]]
        assert parts in contents
        assert told == []
    else:
        assert re.search("hologram.*marked", said_in(request), re.DOTALL)  # Gemini's results are objects
        assert len(told) == 1
        assert told[0].endswith(f".content[{parts.index(HOLOGRAM)}]")


def test_a_part_of_an_unknown_type_beside_reasoning_is_told_to_servers_of_the_form() -> None:
    """The answer is written anew there, with one text."""
    message = {"role": "assistant", "content": [HOLOGRAM], "reasoning_content": "so"}
    request = built("openai-chat", {"model": "m", "messages": [HI, message, HI]}, "vllm")
    assert "hologram" in request.body["messages"][1]["content"]
    assert [one.field for one in request.adaptations if one.kind is AdaptationKind.TOLD] == [
        "messages[1].content[0]"
    ]


GADGET = {"id": "c2", "type": "gadget", "gadget": {"beam": "marked"}}


@pytest.mark.parametrize(
    "calls", [[GADGET], [CHAT_CALL, GADGET], [GADGET, CHAT_CALL]], ids=["alone", "last", "first"]
)
@pytest.mark.parametrize(
    "content", [None, "Word", [WORD], [HOLOGRAM]], ids=["silent", "a text", "a part", "an unknown part"]
)
@pytest.mark.parametrize("to", [*OTHERS, *ASKED_FOR_CHAT[1:]])
def test_a_call_of_an_unknown_type_arrives_everywhere(to: str, content: Any, calls: list[Any]) -> None:
    """A server of the client's form gets the call, any other its JSON as text, and never an empty turn."""
    asked = {"role": "assistant", "content": content, "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": "c1", "content": "x"}] if CHAT_CALL in calls else [HI]
    request = built("openai-chat", {"model": "m", "messages": [HI, asked, *results]}, to)
    told = [one.field for one in request.adaptations if one.kind is AdaptationKind.TOLD]
    assert request.dropped == ()
    if to in ("openai", *ASKED_FOR_CHAT):
        sent = request.body["messages"][1]
        assert sent["tool_calls"] == calls
        assert sent["content"] in (content, [{"type": "text", "text": content}])
        assert told == []
    else:
        assert '"type":"gadget","gadget":{"beam":"marked"}' in said_in(request)
        assert f"messages[1].tool_calls[{calls.index(GADGET)}]" in told


def test_a_call_of_an_unknown_type_beside_reasoning_is_told_to_servers_of_the_form() -> None:
    message = {"role": "assistant", "content": "Word", "tool_calls": [GADGET], "reasoning_content": "so"}
    request = built("openai-chat", {"model": "m", "messages": [HI, message, HI]}, "vllm")
    assert '"gadget":{"beam":"marked"}' in request.body["messages"][1]["content"]
    assert [one.field for one in request.adaptations] == ["messages[1].tool_calls[0]"]


@pytest.mark.parametrize(
    "items",
    [
        [{"type": "message", "role": "user", "content": [HOLOGRAM]}],
        [{"role": "system", "content": [{"type": "input_text", "text": "Word"}, HOLOGRAM]}, HI],
        [HI, FUNCTION, {**FUNCTION_OUTPUT, "output": [HOLOGRAM]}],
    ],
    ids=["the user", "the system", "a tool"],
)
@pytest.mark.parametrize("to", OTHERS)
def test_a_part_of_an_unknown_type_of_responses_is_told(to: str, items: list[Any]) -> None:
    body = {"model": "m", "input": items}
    request = built("openai-responses", body, to)
    assert request.dropped == ()
    if to == "openai_responses":
        assert request.body == body
    else:
        assert re.search("hologram.*marked", said_in(request), re.DOTALL)  # Gemini's results are objects


def from_model(form: str, parts: list[Any]) -> tuple[dict[str, Any], list[str]]:
    """A conversation in which the model has said *parts*, and the places of the unknown ones."""
    unknown = [number for number, part in enumerate(parts) if part is HOLOGRAM]
    if form == "anthropic":
        body = {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": parts}, HI]}
        return body, [f"messages[1].content[{number}]" for number in unknown]
    if form == "gemini":
        said = [{"hologram": {"beam": "marked"}} if part is HOLOGRAM else {"text": "Word"} for part in parts]
        user = {"role": "user", "parts": [{"text": "Hi"}]}
        return {"contents": [user, {"role": "model", "parts": said}, user]}, [
            f"contents[1].parts[{number}]" for number in unknown
        ]
    said = [part if part is HOLOGRAM else {"type": "output_text", "text": "Word"} for part in parts]
    if form == "openai-responses":
        item = {"type": "message", "role": "assistant", "content": said}
        return responses(item, HI), [f"input[1].content[{number}]" for number in unknown]
    items = [part if part is HOLOGRAM else {"role": "assistant", "content": "Word"} for part in parts]
    return responses(*items, HI), [f"input[{number + 1}]" for number in unknown]


@pytest.mark.untraced
@pytest.mark.parametrize(
    "parts", [[HOLOGRAM], [WORD, HOLOGRAM], [HOLOGRAM, WORD]], ids=["alone", "last", "first"]
)
@pytest.mark.parametrize("form", ["anthropic", "gemini", "openai-responses", "openai-responses items"])
@pytest.mark.parametrize("to", OTHERS)
def test_an_unknown_part_of_the_model_s_is_told_at_its_place(to: str, form: str, parts: list[Any]) -> None:
    body, places = from_model(form, parts)
    form = form.partition(" ")[0]
    incoming = read_request(body, form, model=None if "model" in body else "m")
    assert list(incoming.request.told) == places
    request = build_http_request(incoming.request, to, on_unsupported="raise")
    told = [one.field for one in request.adaptations if one.kind is AdaptationKind.TOLD]
    if to == OWN[form]:
        assert request.body == body
        assert told == []
    else:
        assert re.search("hologram.*marked", said_in(request), re.DOTALL)
        assert "(no answer)" not in said_in(request)
        assert told == places


def test_an_unknown_call_is_told_and_its_result_by_itself() -> None:
    item = call("hologram_call", beam="marked")
    request = built(
        "openai-responses", responses(item, output("hologram_call_output", output="well"), HI), "openai"
    )
    texts = [message["content"] for message in request.body["messages"]]
    assert "marked" in texts[1]
    assert texts[2] == "The output of hologram_call_output:\nwell"


@pytest.mark.parametrize("kind", ["item_reference", "compaction_trigger"])
def test_what_a_server_keeps_and_a_hint_are_no_content(kind: str) -> None:
    incoming = read_request(responses({"type": kind, "id": "x"}), "openai-responses")
    assert incoming.request.told == ()
    assert [*incoming.unread] == ["input[1]"]


def test_what_only_its_server_can_read_is_not_told() -> None:
    part = {
        "type": "hologram",
        "beam": "marked",
        "encrypted_content": "zz",
        "more": [{"thoughtSignature": "zz", "x": 1}],
    }
    body = {"model": "m", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": [part]}, HI]}
    text = said_in(built("anthropic", body, "openai"))
    assert "marked" in text
    assert "zz" not in text


@pytest.mark.parametrize("form", ["anthropic", "openai-responses", "openai-responses items", "gemini"])
def test_an_unknown_part_goes_back_to_its_server_beside_turns_that_changed(form: str) -> None:
    """Gemini's server gets a text: its texts are one."""
    body, places = from_model(form, [HOLOGRAM, WORD])
    form = form.partition(" ")[0]
    incoming = read_request(body, form, model=None if "model" in body else "m")
    request = attrs.evolve(
        incoming.request,
        messages=(ChatMessage.user("Before"), *incoming.request.messages),
        known=frozenset({"x"}),
    )
    sent = build_http_request(request, OWN[form])
    told = [one.field for one in sent.adaptations if one.kind is AdaptationKind.TOLD]
    turns = sent.body.get("messages") or sent.body.get("input") or sent.body["contents"]
    assert "Before" in str(turns[0])
    if form == "gemini":
        assert told == places
        assert "hologram" in said_in(sent)
    else:
        assert told == []
        assert str(HOLOGRAM) in str(turns)


@pytest.mark.parametrize("name", ["signature", "fingerprint", "encrypted_note"])
@pytest.mark.parametrize(
    ("form", "to"), [("anthropic", "openai"), ("openai-responses", "ollama"), ("openai-chat", "anthropic")]
)
def test_no_field_of_what_a_user_says_stays_out(form: str, to: str, name: str) -> None:
    """Only a server seals what it says."""
    part = {"type": "contract", name: "Ann B.", "terms": {name: "marked"}}
    said = [{"role": "user", "content": [part]}]
    body = (
        {"model": "m", "input": said}
        if form == "openai-responses"
        else {"model": "m", "max_tokens": 9, "messages": said}
    )
    text = said_in(built(form, body, to))
    assert "Ann B." in text
    assert "marked" in text


def test_a_program_s_part_of_an_unknown_type_is_an_error() -> None:
    with pytest.raises(ResponseValidationError, match="must be text, image_url"):
        ChatRequest([{"role": "user", "content": [HOLOGRAM]}])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("boom", "Error: boom"),
        ("", "Error: the tool has failed"),
        (None, "Error: the tool has failed"),
        ("error 7", "error 7"),
        ([{"type": "text", "text": "boom"}], "boom\nError: the tool has failed"),
        ([{"type": "text", "text": "Error: boom"}], "Error: boom"),
    ],
)
@pytest.mark.parametrize("to", ["openai", "openai_responses", "ollama"])
def test_a_result_says_that_its_tool_has_failed(to: str, content: Any, told: str) -> None:
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": content}
    said = chat(HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})
    request = built("anthropic", said | {"max_tokens": 9}, to)
    sent = request.body["input" if to == "openai_responses" else "messages"][-1]
    text = sent["output" if to == "openai_responses" else "content"]
    if isinstance(text, list):
        text = "\n".join(part["text"] for part in text)
    assert [line for line in text.split("\n") if line] == told.split("\n")
    (change,) = request.adaptations
    assert (change.field, change.kind) == ("messages[2]", AdaptationKind.TOLD)
    assert change.reason == "that the tool has failed: it is sent as text"


@pytest.mark.parametrize("spelling", ["system_instruction", "systemInstruction"])
@pytest.mark.parametrize("to", ["openai", "gemini"])
def test_a_part_alone_is_a_list_of_one(spelling: str, to: str) -> None:
    body: dict[str, Any] = {
        spelling: {"parts": {"text": "Be brief."}},
        "contents": [
            {"role": "user", "parts": {"text": "Hi"}},
            {"role": "model", "parts": {"text": "Yes?"}},
            {"role": "user", "parts": {"text": "Hi"}},
        ],
    }
    request = built("gemini", body, to)
    answer = {"role": "assistant", "content": "Yes?"}
    said = {"messages": [{"role": "system", "content": "Be brief."}, HI, answer, HI], "model": "m"}
    assert request.body == (body if to == "gemini" else said)
