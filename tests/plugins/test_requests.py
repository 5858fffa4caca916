"""A canonical request in each provider's own form: what is said, what is left out, what goes back."""

from __future__ import annotations

from typing import Any

import attrs
import orjson
import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    ChatResponse,
    FilePart,
    ImagePart,
    Segment,
    SegmentType,
    TextPart,
    ToolCall,
    from_json,
    normalize,
    to_json,
)
from crosswalk.agent.results import with_calls
from crosswalk.convert import convert
from crosswalk.service import (
    ChatRequest,
    HTTPRequest,
    NamedTool,
    ResponseFormat,
    ToolDefinition,
    UnsupportedRequestError,
    build_http_request,
)
from wires import body, line, sse

PNG = "iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
NAMED = {"title": "place", **SCHEMA}
"""The name of an answer's schema stands in it, where the API has no other place."""
TOOL = ToolDefinition("weather", "The weather.", SCHEMA)
CALL = ToolCall("callNo1AB", "weather", '{"city":"Paris"}')  # an id that fits everywhere
CONVERSATION = [
    ChatMessage.system("Be brief."),
    ChatMessage.user([TextPart("What is this?"), ImagePart(data=PNG)]),
    ChatMessage.assistant("Let me see.", tool_calls=[CALL]),
    ChatMessage.tool_result(CALL.id, '{"celsius":20}'),
    ChatMessage.user("And now?"),
]
EVERYTHING = ChatRequest(
    CONVERSATION,
    model="m",
    temperature=0.5,
    top_p=0.9,
    top_k=40,
    max_tokens=100,
    stop=["END"],
    seed=7,
    tools=[TOOL],
    tool_choice="auto",
    parallel_tool_calls=False,
    response_format=ResponseFormat(SCHEMA, name="place"),
    reasoning_effort="low",
    stream=True,
)
OPENAI_LIKE = [
    "vllm", "llamacpp", "openai", "deepseek", "fireworks", "groq", "lmstudio", "mistral", "openrouter",
    "sglang", "together", "xai",
]  # fmt: skip


def built(provider: str, request: ChatRequest = EVERYTHING, **changes: Any) -> HTTPRequest:
    return build_http_request(attrs.evolve(request, **changes), provider, on_unsupported="drop")


def asking(**options: Any) -> ChatRequest:
    return ChatRequest("hi", model="m", **options)


def dropped(request: HTTPRequest) -> list[str]:
    return [one.field for one in request.adaptations if one.kind.value != "defaulted"]


# ------------------------------------------------------------------------------------ OpenAI's dialect

OPENAI_MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ],
    },
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {"id": CALL.id, "type": "function", "function": {"name": "weather", "arguments": CALL.arguments}}
        ],
    },
    {"role": "tool", "content": '{"celsius":20}', "tool_call_id": CALL.id},
    {"role": "user", "content": "And now?"},
]
OPENAI_TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA},
}


def test_vllm() -> None:
    request = built("vllm")
    assert (request.method, request.path, request.dropped) == ("POST", "/v1/chat/completions", ())
    assert request.body == {
        "model": "m",
        "messages": OPENAI_MESSAGES,
        "temperature": 0.5,
        "top_p": 0.9,
        "parallel_tool_calls": False,
        "max_tokens": 100,
        "seed": 7,
        "top_k": 40,
        "stop": ["END"],
        "tools": [OPENAI_TOOL],
        "tool_choice": "auto",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "place", "schema": SCHEMA, "strict": True},
        },
        "reasoning_effort": "low",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_openai_differs_from_vllm_in_two_options() -> None:
    ours, theirs = built("openai"), built("vllm").body
    theirs["max_completion_tokens"] = theirs.pop("max_tokens")
    del theirs["top_k"]
    assert ours.body == theirs
    assert dropped(ours) == ["top_k"]


BRIDGE = {"role": "assistant", "content": "I have the results."}
"""What the model says to Mistral between results and the user, who must not speak behind them."""


@pytest.mark.parametrize("provider", OPENAI_LIKE)
def test_every_look_alike_says_the_same_where_it_can(provider: str) -> None:
    request = built(provider)
    expected = [*OPENAI_MESSAGES[:-1], *([BRIDGE] if provider == "mistral" else []), OPENAI_MESSAGES[-1]]
    if provider in ("deepseek", "fireworks", "groq"):  # no schema, or none beside tools
        assert '"city"' in request.body["messages"].pop(0)["content"]
    if provider in ("deepseek", "moonshot"):
        expected = [
            {**one, "reasoning_content": " "} if "tool_calls" in one else one for one in expected
        ]  # refused without any
    assert request.body["messages"] == expected
    assert request.body["tools"] == [OPENAI_TOOL]
    left_out = {one.field for one in request.dropped}
    told = {"response_format.name"} if provider in ("deepseek", "fireworks", "groq") else set()
    assert left_out - {"top_k"} == told
    assert ("top_k" in request.body) is ("top_k" not in left_out)


def test_mistral_calls_the_seed_otherwise_and_counts_unasked() -> None:
    said = built("mistral").body
    assert said["random_seed"] == 7
    assert "seed" not in said
    assert "stream_options" not in said


def test_perplexity_has_no_tools() -> None:
    request = built("perplexity")
    assert request.path == "/chat/completions"
    assert dropped(request) == ["tools", "tool_choice", "parallel_tool_calls", "seed"]
    assert not {"tools", "tool_choice", "seed", "parallel_tool_calls"} & request.body.keys()


def test_what_is_not_asked_for_is_not_said() -> None:
    assert built("openai", asking()).body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_more_of_openais_dialect() -> None:
    strict = attrs.evolve(TOOL, description=None, strict=True)
    parts = [AudioPart(data="UklGRg==", media_type="audio/x-wav"), FilePart(data="JVBERi0x", name="a.pdf")]
    request = asking(tools=[strict], tool_choice=NamedTool("weather"), response_format=ResponseFormat())
    turns = [
        ChatMessage.user(parts, name="Ann"),
        ChatMessage.assistant(),
        ChatMessage.user([ImagePart(url="https://x/y.png")]),
    ]
    said = built("openai", request.with_turns(*turns)).body
    assert said["tools"][0]["function"] == {"name": "weather", "parameters": SCHEMA, "strict": True}
    assert said["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert said["response_format"] == {"type": "json_object"}
    assert said["messages"][1:] == [
        {
            "role": "user",
            "name": "Ann",
            "content": [
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {
                    "type": "file",
                    "file": {"file_data": "data:application/pdf;base64,JVBERi0x", "filename": "a.pdf"},
                },
            ],
        },
        {"role": "assistant", "content": ""},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
    ]


# ------------------------------------------------------------------------------------ Ollama


def test_ollama() -> None:
    request = built("ollama")
    assert request.path == "/api/chat"
    assert dropped(request) == ["parallel_tool_calls"]
    assert request.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is this?", "images": [PNG]},
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [
                    {"id": CALL.id, "function": {"name": "weather", "arguments": {"city": "Paris"}}}
                ],
            },
            {"role": "tool", "content": '{"celsius":20}', "tool_call_id": CALL.id, "tool_name": "weather"},
            {"role": "user", "content": "And now?"},
        ],
        "stream": True,
        "options": {
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 40,
            "seed": 7,
            "num_predict": 100,
            "stop": ["END"],
        },
        "tools": [OPENAI_TOOL],
        "format": NAMED,
        "think": "low",
    }


def test_ollama_streams_unless_told_not_to() -> None:
    assert built("ollama", asking()).body["stream"] is False


@pytest.mark.parametrize(
    ("options", "said", "left_out"),
    [
        ({"tools": [TOOL], "tool_choice": "none"}, {}, []),
        ({"tools": [TOOL], "tool_choice": "required"}, {"tools": [OPENAI_TOOL]}, ["tool_choice"]),
        ({"tools": [TOOL], "tool_choice": NamedTool("weather")}, {"tools": [OPENAI_TOOL]}, ["tool_choice"]),
        ({"response_format": ResponseFormat()}, {"format": "json"}, []),
        ({"reasoning_effort": "none"}, {"think": False}, []),
        ({"reasoning_effort": "xhigh"}, {"think": "high"}, ["reasoning_effort"]),
    ],
    ids=str,
)
def test_more_of_ollama(options: dict[str, Any], said: dict[str, Any], left_out: list[str]) -> None:
    request = built("ollama", asking(**options))
    assert {k: v for k, v in request.body.items() if k not in ("model", "messages", "stream")} == said
    assert dropped(request) == left_out


# ------------------------------------------------------------------------------------ Anthropic


def test_anthropic() -> None:
    request = built("anthropic", temperature=1, top_p=0.95, top_k=None)
    assert (request.path, request.headers) == ("/v1/messages", {"anthropic-version": "2023-06-01"})
    assert dropped(request) == ["seed"]
    assert request.body == {
        "model": "m",
        "max_tokens": 100,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": CALL.id, "name": "weather", "input": {"city": "Paris"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": CALL.id, "content": '{"celsius":20}'},
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
        "system": "Be brief.",
        "temperature": 1,
        "top_p": 0.95,
        "stop_sequences": ["END"],
        "tools": [{"name": "weather", "input_schema": SCHEMA, "description": "The weather."}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive"},
        "output_config": {"format": {"type": "json_schema", "schema": NAMED}, "effort": "low"},
        "stream": True,
    }


@pytest.mark.parametrize(
    ("options", "said", "left_out"),
    [
        ({}, {"max_tokens": 16384}, []),
        ({"response_format": ResponseFormat()}, {"max_tokens": 16384}, ["response_format"]),
        (
            {"reasoning_effort": "none", "max_tokens": 9},
            {"max_tokens": 9, "thinking": {"type": "disabled"}},
            [],
        ),
        (
            {"reasoning_effort": "minimal"},
            {"max_tokens": 16384, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
            ["reasoning_effort"],
        ),
    ],
    ids=str,
)
def test_more_of_anthropic(options: dict[str, Any], said: dict[str, Any], left_out: list[str]) -> None:
    request = built("anthropic", asking(**options))
    assert {k: v for k, v in request.body.items() if k not in ("model", "messages")} == said
    assert dropped(request) == left_out
    default = [one.sent for one in request.adaptations if one.kind.value == "defaulted"]
    assert default == ([] if "max_tokens" in options else [16384])


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ({}, None),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": NamedTool("weather")}, {"type": "tool", "name": "weather"}),
        ({"parallel_tool_calls": True}, {"type": "auto", "disable_parallel_tool_use": False}),
    ],
    ids=str,
)
def test_anthropics_tool_choice(options: dict[str, Any], choice: Any) -> None:
    tool = attrs.evolve(TOOL, description=None, strict=True)
    said = built("anthropic", asking(tools=[tool], **options)).body
    assert said.get("tool_choice") == choice
    assert said["tools"] == [{"name": "weather", "input_schema": SCHEMA, "strict": True}]


@pytest.mark.parametrize("effort", [None, "none", "minimal", "low", "high"])
@pytest.mark.parametrize("choice", ["auto", "required", NamedTool("weather")], ids=str)
def test_anthropic_thinks_without_sampling_options_and_forced_calls(effort: Any, choice: Any) -> None:
    """The API refuses the one with the other."""
    options = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "tools": [TOOL], "tool_choice": choice}
    request = built("anthropic", asking(**options, reasoning_effort=effort))
    refused = ["temperature", "top_p", "top_k", *(["tool_choice"] if choice != "auto" else [])]
    thinks = request.body.get("thinking") == {"type": "adaptive"}
    assert thinks is (effort in ("minimal", "low", "high"))
    assert [name for name in dropped(request) if name in refused] == (refused if thinks else [])
    assert [name for name in refused if name in request.body] == ([] if thinks else refused)


def test_anthropics_parts() -> None:
    parts = [
        ImagePart(url="https://x/y.png"),
        FilePart(data="JVBERi0x", name="a"),
        FilePart(url="https://x/b"),
    ]
    turns = [
        ChatMessage.user(parts),
        ChatMessage.assistant(),
        ChatMessage.user("and"),
        ChatMessage.assistant(tool_calls=[ToolCall("c", "f", "{}")]),
        ChatMessage.tool_result("c", [TextPart("20"), ImagePart(data=PNG)]),
    ]
    message, silent, said, _, results = built("anthropic", ChatRequest(turns, model="m")).body["messages"]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}
    assert message["content"] == [
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "document", "source": pdf, "title": "a"},
        {"type": "document", "source": {"type": "url", "url": "https://x/b"}},
    ]
    assert silent["content"] == [{"type": "text", "text": "(no answer)"}]
    assert said["content"] == [{"type": "text", "text": "and"}]
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "20"}, image]},
    ]


# ------------------------------------------------------------------------------------ Gemini


def test_gemini() -> None:
    request = built("gemini")
    assert request.path == "/v1beta/models/m:streamGenerateContent?alt=sse"
    assert dropped(request) == ["parallel_tool_calls"]
    assert request.body == {
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "Let me see."},
                    {"functionCall": {"id": CALL.id, "name": "weather", "args": {"city": "Paris"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": CALL.id, "name": "weather", "response": {"celsius": 20}}},
                    {"text": "And now?"},
                ],
            },
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "The weather.", "parametersJsonSchema": SCHEMA}
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "maxOutputTokens": 100,
            "seed": 7,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": NAMED,
            "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True},
        },
    }


@pytest.mark.parametrize(
    ("options", "said", "left_out"),
    [
        ({}, {}, []),
        (
            {"response_format": ResponseFormat()},
            {"generationConfig": {"responseMimeType": "application/json"}},
            [],
        ),
        (
            {"reasoning_effort": "none"},
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
            [],
        ),
        (
            {"reasoning_effort": "xhigh"},
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "XHIGH", "includeThoughts": True}}},
            [],
        ),
        (
            {"tools": [ToolDefinition("now")], "tool_choice": NamedTool("now")},
            {
                "tools": [{"functionDeclarations": [{"name": "now"}]}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["now"]}},
            },
            [],
        ),
    ],
    ids=str,
)
def test_more_of_gemini(options: dict[str, Any], said: dict[str, Any], left_out: list[str]) -> None:
    request = built("gemini", asking(**options))
    assert {k: v for k, v in request.body.items() if k != "contents"} == said
    assert dropped(request) == left_out


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("m", "models/m"),
        ("models/m", "models/m"),
        ("tunedModels/a b", "tunedModels/a%20b"),
        ("m?x=1", "models/m%3Fx%3D1"),
        ("m:y", "models/m%3Ay"),
    ],
)
def test_geminis_model_is_part_of_the_path(model: str, path: str) -> None:
    assert built("gemini", asking(), model=model).path == f"/v1beta/{path}:generateContent"


@pytest.mark.parametrize("model", ["../x", "a//b", "models/..", "."])
def test_a_model_is_no_way_out_of_the_path(model: str) -> None:
    with pytest.raises(UnsupportedRequestError, match="model"):
        built("gemini", asking(), model=model)


def test_geminis_parts() -> None:
    parts = [FilePart(url="gs://x", media_type="application/pdf"), FilePart(url="gs://y")]
    calls = ChatMessage.assistant(tool_calls=[ToolCall("c", "f", "{}"), ToolCall("d", "g", "{}")])
    turns = [ChatMessage.user(parts), calls, ChatMessage.tool_result("c", "20", name="f")]
    turns.append(ChatMessage.tool_result("d", "sunny"))
    said, _, given = built("gemini", ChatRequest(turns, model="m")).body["contents"]
    assert said["parts"] == [
        {"fileData": {"fileUri": "gs://x", "mimeType": "application/pdf"}},
        {"fileData": {"fileUri": "gs://y"}},
    ]
    assert given["parts"] == [
        {"functionResponse": {"id": "c", "name": "f", "response": {"result": "20"}}},
        {"functionResponse": {"id": "d", "name": "g", "response": {"result": "sunny"}}},
    ]


# ------------------------------------------------------------------------------------ what cannot be said

IMAGE_URL = ChatMessage.user([ImagePart(url="https://x/y.png")])
SOUND = ChatMessage.user([AudioPart(data="UklGRg==", media_type="audio/wav")])
UNKNOWN = ChatMessage.user([ImagePart(data="AAAA")])


@pytest.mark.parametrize(
    ("provider", "message", "why"),
    [
        ("ollama", IMAGE_URL, "an image must be given as data"),
        ("ollama", SOUND, "a sound cannot be sent"),
        ("ollama", ChatMessage.user([FilePart(data="JVBERi0x")]), "a file cannot be sent"),
        ("openai", ChatMessage.user([FilePart(url="https://x")]), "a file must be given as data"),
        ("openai", UNKNOWN, "an image needs its media_type"),
        ("anthropic", SOUND, "a sound cannot be sent"),
        ("anthropic", UNKNOWN, "an image needs its media_type"),
        ("anthropic", ChatMessage.system([ImagePart(data=PNG)]), "text alone"),
        ("gemini", UNKNOWN, "an image needs its media_type"),
        ("gemini", ChatMessage.tool_result("nobody", "x"), "which no answer before it made"),
    ],
)
def test_what_is_said_in_messages_is_never_dropped(provider: str, message: ChatMessage, why: str) -> None:
    with pytest.raises(UnsupportedRequestError, match=why):
        built(provider, ChatRequest([message], model="m"))


@pytest.mark.parametrize("provider", ["ollama", "anthropic", "gemini"])
def test_arguments_that_are_none_go_back_as_they_were(provider: str) -> None:
    """To an API that takes an object: so that the model can learn what was wrong with them."""
    broken = ChatMessage.assistant(tool_calls=[ToolCall("c", "f", '{"city":')])
    turns = [broken, ChatMessage.user("go on")]
    said = orjson.dumps(built(provider, ChatRequest(turns, model="m")).body)
    assert b'{"INVALID_JSON":"{\\"city\\":"}' in said


# ------------------------------------------------------------------------------------ what a tool shows

SHOWN = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}


@pytest.mark.parametrize("provider", OPENAI_LIKE)
def test_what_a_tool_shows_the_user_shows(provider: str) -> None:
    """Results hold texts alone in OpenAI's dialect. Those of one answer stay together."""
    first, second = ToolCall("callNo1AB", "f", "{}"), ToolCall("callNo2AB", "f", "{}")
    turns = [
        ChatMessage.user("hi"),
        ChatMessage.assistant("Let me see.", tool_calls=[first, second]),
        ChatMessage.tool_result(first.id, [TextPart("one"), ImagePart(data=PNG)]),
        ChatMessage.tool_result(second.id, [ImagePart(data=PNG)]),
    ]
    results = [
        {"role": "tool", "content": "one", "tool_call_id": first.id},
        {
            "role": "tool",
            "content": "The result is shown in the next message of the user.",
            "tool_call_id": second.id,
        },
    ]
    shown = [
        {"type": "text", "text": f"What call {first.id} gave:"}, SHOWN,
        {"type": "text", "text": f"What call {second.id} gave:"}, SHOWN,
    ]  # fmt: skip
    for more, rest in (
        ([], [{"role": "user", "content": shown}]),
        (
            [ChatMessage.user("well?")],
            [{"role": "user", "content": [*shown, {"type": "text", "text": "well?"}]}],
        ),
        (
            [ChatMessage.assistant("I see.")],
            [{"role": "user", "content": shown}, {"role": "assistant", "content": "I see."}],
        ),
    ):
        messages = built(provider, ChatRequest([*turns, *more], model="m")).body["messages"]
        if provider == "mistral":
            rest = [BRIDGE, *rest]
            rest[-1] = rest[-1] | ({"prefix": True} if rest[-1]["role"] == "assistant" else {})
        assert messages[2:] == [*results, *rest]


def test_what_a_tool_shows_to_gemini() -> None:
    turns = [
        ChatMessage.user("hi"),
        ChatMessage.assistant(tool_calls=[CALL]),
        ChatMessage.tool_result(CALL.id, [TextPart("one"), ImagePart(data=PNG)]),
    ]
    (part,) = built("gemini", ChatRequest(turns, model="m")).body["contents"][-1]["parts"]
    assert part["functionResponse"] == {
        "id": CALL.id,
        "name": "weather",
        "response": {"result": "one"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
    }


@pytest.mark.parametrize(
    ("provider", "why"),
    [("gemini", "must be given as data"), ("cohere", "a file cannot be sent")],
)
def test_what_a_tool_cannot_show(provider: str, why: str) -> None:
    part = ImagePart(url="https://x/y.png") if provider == "gemini" else FilePart(data="JVBERi0x")
    turns = [ChatMessage.assistant(tool_calls=[CALL]), ChatMessage.tool_result(CALL.id, [part])]
    with pytest.raises(UnsupportedRequestError, match=why):
        built(provider, ChatRequest(turns, model="m"))


# ------------------------------------------------------------------------------------ what goes back byte for byte


def sent_back(provider: str, payload: Any, to: str | None = None) -> Any:
    """*provider*'s answer in the next request to it, or to another one."""
    answer = normalize(payload, provider)
    request = ChatRequest("hi", model="m").with_turns(answer, ChatMessage.user("go on"))
    said = built(to or provider, request).body
    return (said.get("messages") or said["contents"])[1]


ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "c",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "thinking", "thinking": "", "signature": "hidden"},
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e"}],
        },
        {"type": "tool_use", "id": "toolu_1", "name": "moon", "input": {"day": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def test_anthropic_gets_its_blocks_back() -> None:
    assert sent_back("anthropic", ANTHROPIC) == {"role": "assistant", "content": ANTHROPIC["content"]}


CITED = {
    **ANTHROPIC,
    "content": [
        {"type": "text", "text": "Some say "},
        {
            "type": "text",
            "text": "that it is new",
            "citations": [
                {
                    "type": "web_search_result_location",
                    "cited_text": "new",
                    "url": "u",
                    "encrypted_index": "EE==",
                },
                {"type": "char_location", "cited_text": "", "document_index": 0},
            ],
        },
        {"type": "text", "text": ", and "},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}, "caller": {"type": "direct"}},
        {"type": "text", "text": "old.", "citations": [{"type": "page_location", "cited_text": "old"}]},
        {"type": "tool_use", "id": "t2", "name": "g", "input": {"a": 1}},
    ],
}


def events_of(answer: Any) -> bytes:
    """*answer* as Anthropic streams it. The citations of a text come behind it."""
    events: list[Any] = [{"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}]
    for index, block in enumerate(answer["content"]):
        begin, pieces = dict(block), []
        if block["type"] == "text":
            begin |= {"text": "", **({"citations": []} if "citations" in block else {})}
            pieces = [{"type": "text_delta", "text": block["text"][:3]}]
            pieces += [{"type": "text_delta", "text": block["text"][3:]}]
            pieces += [{"type": "citations_delta", "citation": one} for one in block.get("citations", ())]
        else:
            begin |= {"input": {}}
            pieces = [{"type": "input_json_delta", "partial_json": orjson.dumps(block["input"]).decode()}]
        events.append({"type": "content_block_start", "index": index, "content_block": begin})
        events += [{"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces]
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    )
    return sse(*events, {"type": "message_stop"}, done=False)


@pytest.mark.parametrize("payload", [CITED, events_of(CITED)], ids=["whole", "streamed"])
def test_anthropic_gets_citations_and_callers_back(payload: Any) -> None:
    assert sent_back("anthropic", payload) == {"role": "assistant", "content": CITED["content"]}


def test_a_conversion_puts_citations_where_the_stream_had_them() -> None:
    answer = normalize(events_of(CITED), "anthropic", keep_raw=False)
    content = orjson.loads(convert(answer, "anthropic").value)["content"]
    assert [{k: v for k, v in block.items() if v is not None} for block in content] == CITED["content"]


def test_a_message_that_begins_with_blocks_gives_them_back() -> None:
    """As some servers stream: everything in the first event."""
    start = {"type": "message_start", "message": {**CITED, "stop_reason": None}}
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    payload = sse(start, end, {"type": "message_stop"}, done=False)
    assert sent_back("anthropic", payload) == {"role": "assistant", "content": CITED["content"]}


def test_citations_that_nobody_placed_go_with_the_nearest_text() -> None:
    answer = normalize(CITED, "anthropic")
    cited = Segment(SegmentType.CITATION, "x", {"type": "page_location"})
    foreign = Segment(SegmentType.CITATION, "y", {"url": "u"})
    segments = [cited, foreign, *answer.segments[:5], Segment(SegmentType.TEXT), foreign, cited]
    again = ChatMessage.user("go on")
    request = ChatRequest("hi", model="m").with_turns(attrs.evolve(answer, segments=segments), again)
    location = {"type": "page_location", "cited_text": "x"}
    assert built("anthropic", request).body["messages"][1]["content"] == [
        {"type": "text", "text": "Some say ", "citations": [location]},
        CITED["content"][1],
        {"type": "text", "text": ", and ", "citations": [location]},
    ]


@pytest.mark.parametrize("payload", [CITED, events_of(CITED)], ids=["whole", "streamed"])
def test_a_call_keeps_its_caller_without_the_answers_bytes(payload: Any) -> None:
    """As in a session that was stored and read again."""
    answer = from_json(to_json(normalize(payload, "anthropic")), ChatResponse)
    assert not answer.raw_events
    request = ChatRequest("hi", model="m").with_turns(answer, ChatMessage.user("go on"))
    blocks = built("anthropic", request).body["messages"][1]["content"]
    calls = [block for block in CITED["content"] if block["type"] == "tool_use"]
    assert [block for block in blocks if block["type"] == "tool_use"] == calls


def test_a_call_of_another_id_keeps_its_caller() -> None:
    """Agents rename calls with ids that occur twice."""
    answer = normalize(CITED, "anthropic")
    calls = [attrs.evolve(call, id=f"{call.id}_2") for call in answer.tool_calls]
    request = ChatRequest("hi", model="m").with_turns(with_calls(answer, calls), ChatMessage.user("go on"))
    blocks = built("anthropic", request).body["messages"][1]["content"]
    assert [(b["id"], b.get("caller")) for b in blocks if b["type"] == "tool_use"] == [
        ("t1_2", {"type": "direct"}),
        ("t2_2", None),
    ]


def test_pieces_of_a_block_that_was_never_started() -> None:
    piece = {"type": "text_delta", "text": "a"}
    events = [
        {"type": "message_start", "message": {**CITED, "content": [], "stop_reason": None}},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": {"type": "p"}},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    said = {"type": "text", "text": "a", "citations": [{"type": "p", "cited_text": ""}]}
    assert sent_back("anthropic", sse(*events, done=False))["content"] == [said]


def test_a_text_alone_goes_back_as_one() -> None:
    content = [{"type": "text", "text": "Hello."}]
    assert sent_back("anthropic", {**ANTHROPIC, "content": content})["content"] == content


def test_nobody_else_gets_them() -> None:
    """No other server could verify a signature."""
    assert sent_back("anthropic", ANTHROPIC, "gemini")["parts"] == [
        {"text": "I look."},
        {"functionCall": {"id": "toolu_1", "name": "moon", "args": {"day": 1}}},
    ]
    assert sent_back("anthropic", ANTHROPIC, "vllm") == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "toolu_1", "type": "function", "function": {"name": "moon", "arguments": '{"day":1}'}}
        ],
    }


GEMINI_PARTS = [
    {"text": "Plan.", "thought": True, "thoughtSignature": "AA=="},
    {"text": "I look.", "thoughtSignature": "BB=="},
    {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "x"}}},
    {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"r": 1}}},
    {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "DD=="},
    {"functionCall": {"id": "f1", "name": "ferry", "args": {"route": 4}}, "thoughtSignature": "CC=="},
    {"functionCall": {"id": "f2", "name": "ferry", "args": {}}},
]


def test_gemini_gets_its_parts_back() -> None:
    payload = {
        "candidates": [{"content": {"role": "model", "parts": GEMINI_PARTS}, "finishReason": "STOP"}],
        "modelVersion": "g",
        "responseId": "r",
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
    assert sent_back("gemini", payload) == {"role": "model", "parts": GEMINI_PARTS}


def test_a_thought_without_a_signature_goes_back() -> None:
    parts = [{"text": "Plan.", "thought": True}, {"text": "Hi."}]
    payload = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    assert sent_back("gemini", payload)["parts"] == parts


@pytest.mark.parametrize(
    ("provider", "payload", "field"),
    [
        ("ollama", line("Hi.", done="stop", message={"thinking": "Hm."}), "thinking"),
        ("vllm", body({"content": "Hi.", "reasoning": "Hm."}), "reasoning"),
        ("llamacpp", body({"content": "Hi.", "reasoning_content": "Hm."}), "reasoning_content"),
        ("sglang", body({"content": "Hi.", "reasoning_content": "Hm."}), "reasoning_content"),
    ],
)
def test_reasoning_that_a_template_wants_goes_back(provider: str, payload: Any, field: str) -> None:
    assert sent_back(provider, payload) == {"role": "assistant", "content": "Hi.", field: "Hm."}
    assert field not in sent_back(provider, payload, "openai")


def test_deepseek_gets_its_reasoning_back() -> None:
    """With calls it refuses a request without. Elsewhere it ignores it ("Thinking Mode" in its guides)."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = {"content": None, "reasoning_content": "Hm.", "tool_calls": [call]}
    assert sent_back("deepseek", body(said, "tool_calls"))["reasoning_content"] == "Hm."
    plain = body({"content": "Hi.", "reasoning_content": "Hm."})
    assert sent_back("deepseek", plain)["reasoning_content"] == "Hm."


def test_openrouter_gets_its_details_back() -> None:
    details = [
        {"type": "reasoning.text", "text": "Hm.", "signature": "s", "format": "x", "index": 0},
        {"type": "reasoning.encrypted", "data": "d", "id": "i", "format": "x", "index": 1},
    ]
    payload = body({"content": "Hi.", "reasoning": "Hm.", "reasoning_details": details})
    assert sent_back("openrouter", payload)["reasoning_details"] == details
    assert "reasoning_details" not in sent_back("openrouter", body({"content": "Hi."}))


def test_an_answer_that_was_cut_can_be_sent_back() -> None:
    """An unfinished start is not a call."""
    segments = [Segment(SegmentType.TEXT, "Hel"), Segment(SegmentType.TOOL_CALL, "{", {"id": "c"})]
    cut = attrs.evolve(
        ChatResponse.error("cut", model="m", message=ChatMessage.assistant("Hel")), segments=segments
    )
    for provider in ("ollama", "vllm", "anthropic", "gemini"):
        answer = attrs.evolve(cut, metadata=attrs.evolve(cut.metadata, provider_id=provider))
        said = orjson.dumps(built(provider, ChatRequest("hi", model="m").with_turns(answer)).body)
        assert b"Hel" in said
        assert b'"c"' not in said


def test_little_is_said_of_little() -> None:
    request = ChatRequest([ChatMessage.system(""), ChatMessage.user("hi")], model="m")
    assert "system" not in built("anthropic", request).body
