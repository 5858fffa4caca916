"""Whole answers of every wire format, as data: the body that a server sends, and the limit for the cost of reading it.

A template is the JSON of a body. Parts that change between answers are written ``$name``, see :meth:`Body.written`.
"""

from __future__ import annotations

import json
from string import Template
from typing import Final

import attrs
import orjson

__all__ = ["BODIES", "TEXTS", "Body"]

_SIZES: Final = 400, 10_000, 100_000
"""Bytes of the bodies to measure, or a little more if the format itself is longer."""
_BARS: Final = {400: 50.0, 10_000: 6.0, 100_000: 2.0}
"""The limit for the cost of a body of this many bytes, as a multiple of the floor."""


@attrs.frozen
class Body:
    """A row for each size.

    Attributes:
        provider: the provider of the body.
        template: the body.
        sizes: the bytes of those to measure.
    """

    provider: str
    template: str
    sizes: tuple[int, ...] = _SIZES[:2]

    def bar(self, size: int) -> float | None:
        """Return the limit for *size* bytes, in times ``orjson.loads``, or ``None`` with log probabilities."""
        return None if "$probs" in self.template else _BARS[size]

    def written(self, size: int, number: int = 1, *, model: str = "tiny") -> bytes:
        """Return a body of *size* bytes, or a little more, of the *number*-th answer of a log.

        A template may contain these names apart from ``$model``:

        - ``$text``, the text, and ``$other``, another text,
        - ``$arguments``, JSON with the text,
        - ``$probs``, log probabilities of as many tokens as there is room for, or some more,
        - ``$id``, ``$second``, ``$stamp`` and ``$nanoseconds`` of the answer,
        - ``$in``, ``$out`` and ``$total``, its counts,
        - ``$mean``, the mean of its log probabilities.
        """
        empty = len(self._filled("", 0, number, model))
        line = f'the lazy dog {number} sleeps and says "no".\n'
        if "$probs" in self.template:
            each = len(self._filled("", 1, number, model)) - empty
            tokens = (size - empty) // each + 1 + number % 5  # all answers differ in length
            return self._filled(" dog" * tokens, tokens, number, model)
        text = line * (size // len(line) + 1)
        return self._filled(text[: max(size - empty, 20)], 0, number, model)

    def _filled(self, text: str, tokens: int, number: int, model: str) -> bytes:
        times = number % 9 + 1
        said = Template(self.template).substitute(
            model=model, text=json.dumps(text), other=f'"no dog {number}"', arguments=json.dumps(json.dumps({"text": text})),
            probs=", ".join(_token(number + n) for n in range(tokens)), id=f"{number:08x}", second=1795168361 + number,
            stamp=f'"2026-11-20T09:48:{number % 60:02d}.{371791712 + number % 1000:09d}Z"', nanoseconds=5764978 * times,
            **{"in": 20 * times}, out=2000 * times, total=2020 * times, mean=-0.0617 * times,
        )  # fmt: skip
        return orjson.dumps(orjson.loads(said))


def _token(number: int) -> str:
    """Return a token as vLLM writes it: its log probability, and that of another token."""
    token = {"token": " dog", "logprob": -0.25 - number % 97 / 1024, "bytes": [32, 100, 111, 103]}
    other = {"token": " cat", "logprob": -1.5 - number % 89 / 1024, "bytes": [32, 99, 97, 116]}
    return json.dumps({**token, "top_logprobs": [token, other]})


_NULLS = '"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null'


def _vllm(*choices: str) -> str:
    """Return a body of vLLM: for each choice its message without nulls, and the rest."""
    return (
        '{"id":"chatcmpl-9ca274c8$id","object":"chat.completion","created":$second,"model":"$model",'
        f'"choices":[{",".join(choices)}],'
        '"service_tier":null,"system_fingerprint":"vllm-0.32.0-c5125ecc","usage":{"prompt_tokens":$in,"total_tokens":$total,'
        '"completion_tokens":$out,"prompt_tokens_details":null},"prompt_logprobs":null,"kv_transfer_params":null}'
    )


def _choice(said: str, finish: str = "stop", probs: str = "null", index: int = 0) -> str:
    """Return a choice of vLLM."""
    message = f'{{"role":"assistant",{said},{_NULLS}}}'
    more = '"stop_reason":null,"token_ids":null'
    return f'{{"index":{index},"message":{message},"logprobs":{probs},"finish_reason":"{finish}",{more}}}'


def _calls(count: int) -> str:
    """Return *count* calls in OpenAI's dialect."""
    call = '{"id":"call_%d$id","type":"function","function":{"name":"save","arguments":$arguments}}'
    return f'"content":null,"tool_calls":[{",".join(call % number for number in range(count))}]'


def _openai(said: str, finish: str) -> str:
    return (
        '{"id":"chatcmpl-9ca274c8$id","object":"chat.completion","created":$second,"model":"$model","choices":[{"index":0,'
        f'"message":{{"role":"assistant",{said},"refusal":null,"annotations":[]}},"logprobs":null,"finish_reason":"{finish}"}}],'
        '"usage":{"prompt_tokens":$in,"total_tokens":$total,"completion_tokens":$out,'
        '"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},'
        '"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}},'
        '"service_tier":"default","system_fingerprint":"fp_50cad350e4"}'
    )


def _anthropic(block: str, reason: str) -> str:
    return (
        '{"id":"msg_01XFDUDYJgAACzvn$id","type":"message","role":"assistant","model":"$model",'
        f'"content":[{block}],"stop_reason":"{reason}","stop_sequence":null,"usage":{{"input_tokens":$in,'
        '"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":$out,"service_tier":"standard"}}'
    )


def _ollama(said: str, more: str = "") -> str:
    return (
        '{"model":"$model","created_at":$stamp,'
        f'"message":{{"role":"assistant",{said}}},"done":true,"done_reason":"stop"{more},'
        '"total_duration":$nanoseconds,"load_duration":685328,"prompt_eval_count":$in,'
        '"prompt_eval_duration":992000,"eval_count":$out,"eval_duration":2378000}'
    )


def _gemini(part: str) -> str:
    return (
        f'{{"candidates":[{{"content":{{"parts":[{{{part}}}],"role":"model"}},"finishReason":"STOP","avgLogprobs":$mean}}],'
        '"usageMetadata":{"promptTokenCount":$in,"candidatesTokenCount":$out,"totalTokenCount":$total,'
        '"promptTokensDetails":[{"modality":"TEXT","tokenCount":$in}],'
        '"candidatesTokensDetails":[{"modality":"TEXT","tokenCount":$out}]},'
        '"modelVersion":"$model","responseId":"YwBpaZv8Os6x$id"}'
    )


def _responses(item: str) -> str:
    return (
        '{"id":"resp_0b2f1c9e$id","object":"response","created_at":$second,"status":"completed","error":null,'
        f'"incomplete_details":null,"instructions":null,"model":"$model","output":[{item}],"parallel_tool_calls":true,'
        '"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":{"input_tokens":$in,'
        '"input_tokens_details":{"cached_tokens":0},"output_tokens":$out,"output_tokens_details":{"reasoning_tokens":0},'
        '"total_tokens":$total}}'
    )


def _bedrock(block: str, reason: str) -> str:
    return (
        f'{{"output":{{"message":{{"role":"assistant","content":[{{{block}}}]}}}},"stopReason":"{reason}",'
        '"usage":{"inputTokens":$in,"outputTokens":$out,"totalTokens":$total},"metrics":{"latencyMs":430}}'
    )


def _cohere(said: str, finish: str) -> str:
    return (
        f'{{"id":"c14c-$id","finish_reason":"{finish}","message":{{"role":"assistant",{said}}},'
        '"usage":{"billed_units":{"input_tokens":$in,"output_tokens":$out},"tokens":{"input_tokens":$in,"output_tokens":$out}}}'
    )


_DEEPSEEK = (
    '{"id":"d5e6-$id","object":"chat.completion","created":$second,"model":"$model","choices":[{"index":0,"message":'
    '{"role":"assistant","content":$text},"logprobs":null,"finish_reason":"stop"}],"system_fingerprint":"fp_d_fp8_kvcache",'
    '"usage":{"prompt_tokens":$in,"completion_tokens":$out,"total_tokens":$total,'
    '"prompt_tokens_details":{"cached_tokens":0},"prompt_cache_hit_tokens":0,"prompt_cache_miss_tokens":$in}}'
)
_MESSAGE = (
    '{"id":"msg_$id","type":"message","status":"completed","role":"assistant",'
    '"content":[{"type":"output_text","annotations":[],"logprobs":[],"text":$text}]}'
)
_FUNCTION = (
    '{"id":"fc_$id","type":"function_call","status":"completed","call_id":"call_$id","name":"save",'
    '"arguments":$arguments}'
)
_COHERE_CALL = '{"id":"save_$id","type":"function","function":{"name":"save","arguments":$arguments}}'
_USED = '{"type":"tool_use","id":"toolu_$id","name":"save","input":{"text":$text}}'
_OLLAMA_CALL = '{"id":"call_$id","function":{"index":0,"name":"save","arguments":{"text":$text}}}'

TEXTS: Final = {
    "vllm": Body("vllm", _vllm(_choice('"content":$text')), _SIZES),
    "openai": Body("openai", _openai('"content":$text', "stop"), _SIZES),
    "anthropic": Body("anthropic", _anthropic('{"type":"text","text":$text}', "end_turn"), _SIZES),
    "ollama": Body("ollama", _ollama('"content":$text'), _SIZES),
    "gemini": Body("gemini", _gemini('"text":$text'), _SIZES),
}
"""Bodies with a text, by provider: of every size."""

BODIES: Final = {
    "vLLM: text": TEXTS["vllm"],
    "vLLM: a tool call": Body("vllm", _vllm(_choice(_calls(1), "tool_calls"))),
    "vLLM: 2 tool calls": Body("vllm", _vllm(_choice(_calls(2), "tool_calls"))),
    "vLLM: 2 choices": Body("vllm", _vllm(_choice('"content":$text'), _choice('"content":$other', index=1))),
    "vLLM: log probabilities": Body(
        "vllm", _vllm(_choice('"content":$text', probs='{"content":[$probs]}')), (2_000, *_SIZES[1:])
    ),
    "OpenAI: text": TEXTS["openai"],
    "OpenAI: a tool call": Body("openai", _openai(_calls(1), "tool_calls")),
    "DeepSeek: text": Body("deepseek", _DEEPSEEK),
    "Anthropic: text": TEXTS["anthropic"],
    "Anthropic: a tool call": Body("anthropic", _anthropic(_USED, "tool_use")),
    "Ollama: text": TEXTS["ollama"],
    "Ollama: a tool call": Body("ollama", _ollama(f'"content":"","tool_calls":[{_OLLAMA_CALL}]')),
    "Ollama: log probabilities": Body(
        "ollama", _ollama('"content":$text', ',"logprobs":[$probs]'), (2_000, 10_000)
    ),
    "Gemini: text": TEXTS["gemini"],
    "Gemini: a tool call": Body(
        "gemini", _gemini('"functionCall":{"name":"save","args":{"text":$text},"id":"fc-$id"}')
    ),
    "Responses: text": Body("openai_responses", _responses(_MESSAGE)),
    "Responses: a tool call": Body("openai_responses", _responses(_FUNCTION)),
    "Bedrock: text": Body("bedrock", _bedrock('"text":$text', "end_turn")),
    "Bedrock: a tool call": Body(
        "bedrock",
        _bedrock('"toolUse":{"toolUseId":"tooluse_$id","name":"save","input":{"text":$text}}', "tool_use"),
    ),
    "Cohere: text": Body("cohere", _cohere('"content":[{"type":"text","text":$text}]', "COMPLETE")),
    "Cohere: a tool call": Body("cohere", _cohere(f'"tool_calls":[{_COHERE_CALL}]', "TOOL_CALL")),
}
