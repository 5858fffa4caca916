"""Keys that arguments repeat: a body that sends these as an object keeps them, as a stream of their text does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pytest

from crosswalk import Limits, ToolCallArgumentsError, normalize, normalize_stream
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import ProviderInfo, ResponseDelta, hookimpl
from wires import chunk, sse

REPEATED = '{"path":"a","to":[{"x":1,"x":{"y":null}}],"path":"b"}'


def anthropic(*inputs: str, kind: str = "tool_use") -> str:
    calls = ",".join(
        f'{{"type":"{kind}","id":"t{number}","name":"web_search","input":{given}}}'
        for number, given in enumerate(inputs)
    )
    return (
        f'{{"id":"m","type":"message","role":"assistant","model":"c","content":[{calls}],"stop_reason":"tool_use",'
        '"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}'
    )


def anthropic_stream(given: str) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c",
                                              "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "tool_use", "id": "t0", "name": "web_search", "input": {}}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
          for piece in (given[:9], given[9:])),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


def ollama(given: str) -> str:
    return (
        '{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":'
        f'[{{"function":{{"name":"f","arguments":{given}}}}}]}},"done":true,"done_reason":"stop",'
        '"prompt_eval_count":1,"eval_count":1}'
    )


def gemini(given: str) -> str:
    return (
        f'{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"f","args":{given}}}}}],"role":"model"}},'
        '"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,'
        '"totalTokenCount":2},"modelVersion":"g"}'
    )


def bedrock(given: str) -> str:
    return (
        f'{{"output":{{"message":{{"role":"assistant","content":[{{"toolUse":{{"toolUseId":"t","name":"f","input":{given}'
        '}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},'
        '"metrics":{"latencyMs":1}}'
    )


def openai(given: str) -> str:
    return (
        '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":'
        f'"assistant","content":null,"tool_calls":[{{"id":"x","type":"function","function":{{"name":"f","arguments":{given}'
        '}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
    )


BODIES: dict[str, Callable[[str], str]] = {
    "anthropic": anthropic,
    "ollama": ollama,
    "gemini": gemini,
    "bedrock": bedrock,
    "openai": openai,
}


@pytest.mark.parametrize("provider", BODIES)
def test_arguments_keep_keys_that_stand_twice_however_often_such_a_body_comes(provider: str) -> None:
    body = BODIES[provider](REPEATED)
    for _ in range(5):  # from the second on it is read by its likeness
        (call,) = normalize(body, provider).tool_calls
        assert call.arguments == REPEATED
    with pytest.raises(ToolCallArgumentsError, match="repeated"):
        call.parsed()


@pytest.mark.parametrize("provider", ["ollama", "gemini"])
def test_a_stream_that_sends_arguments_as_an_object_keeps_them_too(provider: str) -> None:
    body = BODIES[provider](REPEATED).encode()
    stream = normalize_stream(
        [body + b"\n" if provider == "ollama" else b"data: " + body + b"\n\n"], provider
    )
    assert [delta.tool_call_delta.arguments_delta for delta in stream if delta.tool_call_delta] == [REPEATED]
    assert stream.response.tool_calls[0].arguments == REPEATED


def test_a_body_says_what_its_stream_says() -> None:
    stream = normalize_stream([anthropic_stream(REPEATED)], "anthropic")
    list(stream)
    assert stream.response.tool_calls == normalize(anthropic(REPEATED), "anthropic").tool_calls


def test_each_of_several_calls_keeps_its_own() -> None:
    given = ['{"x":2}', '{"x":1,"x":2}', '{"x":[{"k":1}]}', '{"x":2}', '{"x":0,"x":[{"k":2,"k":1}]}']
    response = normalize(anthropic(*given), "anthropic")
    assert [call.arguments for call in response.tool_calls] == given


def test_the_input_of_a_servers_own_tool_keeps_them() -> None:
    response = normalize(anthropic(REPEATED, kind="server_tool_use"), "anthropic")
    assert [segment.content for segment in response.segments] == [REPEATED]


def test_spaces_and_escapes_are_those_of_other_arguments() -> None:
    body = anthropic('{ "a\\u0062" : 1, "ab": "\\/",\n "wei": 1250000000000000000001 }')
    assert (
        normalize(body, "anthropic").tool_calls[0].arguments
        == '{"ab":1,"ab":"/","wei":1250000000000000000001}'
    )


@pytest.mark.parametrize(
    "given", ['{"x":1,"y":":"}', '{"x":{"x":{"x":1}}}', "{}", '{"a":"{\\"a\\":1,\\"a\\":2}"}']
)
def test_others_are_written_as_ever(given: str) -> None:
    for said in (given, given.replace(":", " : ")):
        (call,) = normalize(ollama(said), "ollama").tool_calls
        assert call.arguments == json.dumps(json.loads(said), separators=(",", ":"))


def test_what_is_repeated_elsewhere_changes_no_arguments() -> None:
    body = anthropic('{"x":1}').replace('"model":"c"', '"model":"b","model":"c"')
    response = normalize(body, "anthropic")
    assert (response.model, response.tool_calls[0].arguments) == ("c", '{"x":1}')


@pytest.mark.parametrize("key", ["x", "\\u0078", "a\\/b"])
def test_an_equal_object_elsewhere_hides_no_key_that_stands_twice(key: str) -> None:
    name = json.loads(f'"{key}"')
    given = f'{{"{key}":1,"{key}":2}}'
    body = ollama(given).replace('"done":true', f'"other":{{"{name}":2}},"done":true')
    assert normalize(body, "ollama").tool_calls[0].arguments == f'{{"{name}":1,"{name}":2}}'


class Altering:
    """A provider with a plugin that makes its own arguments, which are not an object of the event."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Altering")

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Iterable[ResponseDelta]:
        event.pop("calls")
        for number in range(40):
            yield ResponseDelta(tool_call_delta=state.tool_call(
                id=f"t{number}", name="f", arguments=f'{{"made":{number}}}', whole=True))  # fmt: skip
        yield ResponseDelta(raw_finish_reason="stop")

    @hookimpl
    def map_finish_reason(self, reason: str) -> str:
        return "tool_calls"


def test_arguments_that_a_plugin_made_stay_what_it_made() -> None:
    registry = Registry()
    registry.register(Altering(), "altering")
    response = normalize('{"calls":[{"made":1,"made":1.5}]}', "altering", registry=registry)
    assert [call.arguments for call in response.tool_calls] == [f'{{"made":{n}}}' for n in range(40)]


@pytest.mark.parametrize("levels", [300, 1000])
def test_where_a_lost_value_is_too_deep_to_be_written_the_last_one_is_kept(levels: int) -> None:
    body = ollama('{"a":' + "[" * levels + "]" * levels + ',"a":2}')
    response = normalize(body, "ollama", limits=Limits(depth=1024))
    assert response.tool_calls[0].arguments == '{"a":2}'


def test_integers_of_any_length_stand_beside_them() -> None:
    given = '{"n":' + "7" * 400 + ',"n":1}'
    assert normalize(anthropic(given), "anthropic").tool_calls[0].arguments == given


# --------------------------------------------------------------- exact, whole, streamed and byte by byte

EXACT = [
    REPEATED,
    '{"n":604462909807314587353087}',  # 79 bits
    '{"n":-1208925819614629174706175}',  # 80 bits
    '{"n":[123456789012345678901234567890,{"x":1}]}',  # 30 digits
]


def openai_stream(given: str) -> bytes:
    chunks = [
        {"tool_calls": [{"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in (given[:9], given[9:12], given[12:])),
    ]  # fmt: skip
    return sse(*(chunk(delta) for delta in chunks), chunk({}, "tool_calls"))


def ollama_stream(given: str) -> bytes:
    last = '{"model":"m","created_at":"2026-01-01T00:00:01Z","message":{"role":"assistant","content":""},"done":true}'
    return ollama(given).replace('"done":true', '"done":false').encode() + b"\n" + last.encode() + b"\n"


STREAMS: dict[str, Callable[[str], bytes]] = {
    "anthropic": anthropic_stream,
    "openai": openai_stream,
    "ollama": ollama_stream,
    "gemini": lambda given: b"data: %s\n\n" % gemini(given).encode(),
}


@pytest.mark.untraced
@pytest.mark.parametrize("given", EXACT)
@pytest.mark.parametrize("size", [1, 7, None])
@pytest.mark.parametrize("provider", BODIES)
def test_a_body_gives_the_arguments_as_they_were_sent(provider: str, size: int | None, given: str) -> None:
    text = json.dumps(given) if provider == "openai" else given
    payload = BODIES[provider](text).encode()
    assert arguments_of(provider, payload, size) == given
    assert [call.arguments for call in normalize(payload, provider).tool_calls] == [given]


@pytest.mark.untraced
@pytest.mark.parametrize("given", EXACT)
@pytest.mark.parametrize("size", [1, 7, None])
@pytest.mark.parametrize("provider", STREAMS)
def test_a_stream_gives_the_arguments_as_they_were_sent(provider: str, size: int | None, given: str) -> None:
    assert arguments_of(provider, STREAMS[provider](given), size) == given


def arguments_of(provider: str, payload: bytes, size: int | None) -> str:
    """The arguments of the one call in *payload*, read in pieces of *size* bytes. ``None`` for all at once."""
    step = size or len(payload)
    stream = normalize_stream((payload[at : at + step] for at in range(0, len(payload), step)), provider)
    pieces = [delta.tool_call_delta for delta in stream if delta.tool_call_delta is not None]
    (call,) = stream.response.tool_calls
    assert "".join(piece.arguments_delta or "" for piece in pieces) == call.arguments
    return call.arguments


@pytest.mark.parametrize("number", ["1208925819614629174706175", "123456789012345678901234567890"])
@pytest.mark.parametrize("size", [1, 7, None])
def test_an_unknown_number_keeps_all_its_digits(number: str, size: int | None) -> None:
    """Also if it is in every event, next to text that is all that changes."""
    events = [
        b'{"serial":%s,%s' % (number.encode(), orjson.dumps(chunk({"content": text}))[1:]) for text in "abcd"
    ]
    payload = sse(*events, chunk({}, "stop"))
    step = size or len(payload)
    stream = normalize_stream((payload[at : at + step] for at in range(0, len(payload), step)), "openai")
    assert "".join(delta.content_delta or "" for delta in stream) == "abcd"
    assert stream.response.metadata.extensions["serial"] == int(number)
