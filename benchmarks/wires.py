"""Streams of every wire format, as data: the start, the events of each piece, the end, and the limit for the cost.

A template is the JSON of an event. Parts that change are written ``$name``, see :meth:`Stream.answer`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import Template
from typing import Any, Final, NamedTuple

import attrs
import orjson

from benchmarks.payloads import words

__all__ = ["PIECES", "STREAMS", "Answer", "Stream"]

PIECES: Final = 1_000
"""The number of pieces that are read of each stream, of one answer or of many short ones."""
_NAMED: Final = ("anthropic", "openai_responses", "cohere")
"""The providers that name their SSE events after the type."""


class Answer(NamedTuple):
    """One answer on the wire.

    Attributes:
        frames: its events as the server frames them.
        datas: the JSON of those that have any.
    """

    frames: list[bytes]
    datas: list[bytes]


@attrs.frozen
class Stream:
    """One row of the table.

    Attributes:
        provider: the provider of the stream.
        bar: the limit for its live cost, an event a read, in times ``orjson.loads``.
        piece: the template of an event with a piece.
        start: the templates of the events before. One with ``$turn`` is sent for each turn.
        end: the templates of the events after, in the same way.
        turns: the number of choices or calls that take turns to send a piece.
        opens: the text that the framing puts before an event. Empty if each event is a line.
        pieces: the number of pieces of an answer.
    """

    provider: str
    bar: float
    piece: str
    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    turns: int = 1
    opens: str = "data: "
    pieces: int = PIECES

    def answer(self, number: int = 0) -> Answer:
        """Return an answer with the id and time of its *number*.

        A template may contain these names:

        - ``$text`` and ``$arguments``, a piece of a text or of the arguments of a call,
        - ``$whole`` and ``$call``, all of them,
        - ``$turn``, the choice or call of the piece,
        - ``$n``, the number of the piece, from 1, and ``$total``, with the 20 tokens of the prompt,
        - ``$event``, the number of the event, from 0,
        - ``$token``, ``$logprob``, ``$less`` and ``$bytes`` of a token and its rival,
        - ``$stamp``, a time,
        - ``$pad``, padding of varying length,
        - ``$id`` and ``$second``, of the answer.
        """
        texts = words(self.pieces)
        calls = _arguments(max(1, self.pieces // self.turns))
        about = {"id": f"{number:08x}", "second": 1795168361 + number}
        about |= {"whole": json.dumps("".join(texts)), "call": json.dumps("".join(calls))}
        answer = Answer([], [])

        def send(template: str, n: int) -> None:
            text, call = texts[n % self.pieces], calls[n // self.turns % len(calls)]
            said = Template(template).substitute(
                about, text=json.dumps(text), arguments=json.dumps(call), bytes=list(text.encode()), n=n + 1, total=n + 21,
                event=len(answer.datas), turn=n % self.turns, token=500 + n * 7 % 400,
                logprob=-0.25 - n % 97 / 1024, less=-1.5 - n % 89 / 1024,
                stamp=f'"2026-11-20T09:48:23.{371791712 + n * 37:09d}Z"', pad="abcdefghijkl"[: n % 12 + 1],
            )  # fmt: skip
            self._frame(said, answer)

        def once_or_in_turn(template: str, n: int) -> None:
            for turn in range(self.turns if "$turn" in template else 1):
                send(template, n + turn)

        for template in self.start:
            once_or_in_turn(template, 0)
        for n in range(self.pieces):
            send(self.piece, n)
        for template in self.end:
            once_or_in_turn(template, self.pieces)
        return answer

    def _frame(self, said: str, answer: Answer) -> None:
        name, brace, rest = said.partition("{")
        if brace:
            event = orjson.loads(brace + rest)
            data = orjson.dumps(event)
            answer.datas.append(data)
            name = name.strip() or (event["type"] if self.provider in _NAMED else "")
        else:
            name, data = "", said.encode()
        head = f"event: {name}\n" if name else ""
        tail = "\n\n" if self.opens else "\n"
        answer.frames.append(f"{head}{self.opens}".encode() + data + tail.encode())


def _arguments(count: int) -> list[str]:
    """Return the arguments of a call in *count* pieces."""
    text = json.dumps({"text": "the lazy dog " * (count // 3)})
    size = max(1, len(text) // count)
    cuts = [text[n * size : (n + 1) * size] for n in range(count - 1)]
    return [*cuts, text[(count - 1) * size :]]


def _chunk(
    delta: str, *, choice: str = "0", probs: str = "null", finish: str = "null", more: str = ""
) -> str:
    """Return a chunk of OpenAI's dialect with one choice."""
    said = f'"index":{choice},"delta":{{{delta}}},"logprobs":{probs},"finish_reason":{finish}'
    about = '"id":"chatcmpl-9ca274c8$id","object":"chat.completion.chunk","created":$second,"model":"tiny"'
    return f'{{{about},"choices":[{{{said}}}]{more}}}'


def _call(said: str, index: str = "0") -> str:
    """Return the part of a chunk for a tool call."""
    return f'"tool_calls":[{{"index":{index},{said}}}]'


_STOP = (_chunk("", finish='"stop"'), "[DONE]")
_CALLED = (_chunk("", finish='"tool_calls"'), "[DONE]")
_CALLING = '"id":"call_$turn","type":"function","function":{"name":"save","arguments":""}'
_MORE = '"function":{"arguments":$arguments}'
_TEXT = '"content":$text'
_LISTED = (
    ',"logprobs":[{"token":$text,"logprob":$logprob,"bytes":$bytes,"top_logprobs":[{"token":$text,"logprob":$logprob,'
    '"bytes":$bytes},{"token":" a","logprob":$less,"bytes":[32,97]}]}]'
)
_PROBS = _LISTED.replace(',"logprobs":', '{"content":', 1) + ',"refusal":null}'
_USAGE = ',"usage":{"prompt_tokens":20,"total_tokens":$total,"completion_tokens":$n}'
_TIMINGS = (
    ',"timings":{"cache_n":16,"prompt_n":4,"prompt_ms":2.68,"prompt_per_token_ms":0.67,"prompt_per_second":373.13432835820896,'
    '"predicted_n":$n,"predicted_ms":1$n.75,"predicted_per_token_ms":1.$n,"predicted_per_second":49$token.25}'
)
_LEGACY = (
    '{"id":"cmpl-967f1857$id","object":"text_completion","created":$second,"model":"tiny","choices":[{"index":0,"text":%s,'
    '"logprobs":null,"finish_reason":%s,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}'
)
_LINE = '{"model":"tiny","created_at":$stamp,"message":{"role":"assistant","content":"",%s},"done":false%s}'
_SAID = '{"model":"tiny","created_at":$stamp,"message":{"role":"assistant","content":$text},"done":false%s}'
_COUNTS = '"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":1000}'
_LINE_END = ('{"model":"tiny","created_at":$stamp,"message":{"role":"assistant","content":""},' + _COUNTS,)


def _anthropic(block: str, delta: str) -> dict[str, Any]:
    """Return a message of Anthropic with one block."""
    return {
        "start": (
            '{"type":"message_start","message":{"id":"msg_$id","type":"message","role":"assistant","model":"tiny","content":[],'
            '"usage":{"input_tokens":20,"output_tokens":1}}}',
            f'{{"type":"content_block_start","index":0,"content_block":{{{block}}}}}',
        ),
        "piece": f'{{"type":"content_block_delta","index":0,"delta":{{{delta}}}}}',
        "end": (
            '{"type":"content_block_stop","index":0}',
            '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1000}}',
            '{"type":"message_stop"}',
        ),
    }  # fmt: skip


def _gemini(part: str, counts: str) -> dict[str, Any]:
    """Return an answer of Gemini. Each of its events is a whole answer."""
    event = (
        '{"candidates":[{"content":{"parts":[{%s}],"role":"model"}%s,"index":$turn}],"usageMetadata":{"promptTokenCount":20,'
        f'{counts}"totalTokenCount":$total}},"modelVersion":"tiny","responseId":"r-$id"}}'
    )
    return {"piece": event % (part, ""), "end": (event % ('"text":"."', ',"finishReason":"STOP"'),)}


_RESPONSE = (
    '"response":{"id":"resp_$id","object":"response","created_at":$second,"status":"%s","model":"tiny",'
    '"output":[%s]%s}'
)


def _responses(
    kind: str, said: str, item: str, first: str, last: str, ends: Mapping[str, str]
) -> dict[str, Any]:
    """Return a response with one item.

    Args:
        kind: the type of its deltas, without ``response.`` and ``.delta``.
        said: the content of a delta, and its position in the item.
        item: the fields that the item has first and last.
        first: the fields at first.
        last: the fields in the end.
        ends: the content of the events between the last delta and the end of the item, by type.
    """

    def event(type: str, more: str) -> str:
        return f'{{"type":"response.{type}","sequence_number":$event,{more}}}'

    at = '"item_id":"it_1","output_index":0,'
    done = f'{{"id":"it_1",{item},"status":"completed",{last}}}'
    started = f'{{"id":"it_1",{item},"status":"in_progress",{first}}}'
    usage = ',"usage":{"input_tokens":20,"output_tokens":1000,"total_tokens":1020}'
    return {
        "start": (
            event("created", _RESPONSE % ("in_progress", "", "")),
            event("output_item.added", f'"output_index":0,"item":{started}'),
        ),
        "piece": event(f"{kind}.delta", at + said),
        "end": (
            *(event(type, at + more) for type, more in ends.items()),
            event("output_item.done", f'"output_index":0,"item":{done}'),
            event("completed", _RESPONSE % ("completed", done, usage)),
        ),
    }


def _cohere(kind: str, start: str, piece: str, more: str = "") -> dict[str, Any]:
    """Return a message of Cohere with one part. *more* is added to each event with a piece."""
    index = ',"index":0' if start else ""
    event = f'{{"type":"{kind}-%s"{index}%s}}'
    message = ',"delta":{"message":{%s}}'
    start_event = (event % ("start", message % start),) if start else ()
    return {
        "start": (
            '{"id":"c-$id","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"",'
            '"tool_calls":[],"citations":[]}}}',
            *start_event,
        ),
        "piece": event % ("delta", message % piece + more),
        "end": (
            *([event % ("end", "")] if start else []),
            '{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":20.0,'
            '"output_tokens":1000.0}}}}',
        ),
    }


def _bedrock(delta: str, start: str = "") -> dict[str, Any]:
    """Return a message of Bedrock with one block."""
    begins = f'contentBlockStart {{"contentBlockIndex":0,"start":{{{start}}},"p":"abcd"}}'
    return {
        "start": ('messageStart {"role":"assistant","p":"abcdef"}', *([begins] if start else [])),
        "piece": f'contentBlockDelta {{"contentBlockIndex":0,"delta":{{{delta}}},"p":"$pad"}}',
        "end": (
            'contentBlockStop {"contentBlockIndex":0,"p":"ab"}',
            'messageStop {"stopReason":"end_turn","p":"abcd"}',
            'metadata {"usage":{"inputTokens":20,"outputTokens":1000,"totalTokens":1020},"metrics":{"latencyMs":430}}',
        ),
    }


def _dialect(provider: str, delta: str, bar: float, **more: Any) -> Stream:
    """Return a stream of OpenAI's dialect, with a call first if *delta* continues one."""
    calls = "$arguments" in delta
    start = (_chunk(_call(_CALLING, "$turn")),) if calls else ()
    return Stream(provider, bar, _chunk(delta, **more), start, _CALLED if calls else _STOP)


_TEXTS: Final = 2.5
_ARGUMENTS: Final = 4.5
"""Tool arguments, and text with padding."""
_NAMED_EVENTS: Final = 5.5
"""Anthropic, Responses, Bedrock, Cohere."""
_OLLAMA: Final = 6.0
"""Text with a timestamp."""
_COUNTED: Final = 7.0
"""Log probabilities, counts in each event, several choices or calls."""
_GEMINI: Final = 8.0
_SHORT: Final = 8.0
"""Answers of 20 events."""
_NEW: Final = 14.0
"""Nothing repeats: each event has another value in a field that no declaration names."""
_TOKEN_IDS: Final = 20.0
_NATIVE = '{"index":0,"content":$text,"tokens":[%s],"stop":false,"id_slot":-1,"tokens_predicted":$n,"tokens_evaluated":20}'
_NATIVE_END = (
    '{"index":0,"content":"","tokens":[],"id_slot":0,"stop":true,"model":"tiny","tokens_predicted":1000,"tokens_evaluated":20,'
    '"has_new_line":true,"truncated":false,"stop_type":"eos","stopping_word":"","tokens_cached":1020}',
)
_MESSAGE = '"type":"message","role":"assistant"'
_SPOKEN = {
    "output_text.done": '"content_index":0,"text":$whole',
    "content_part.done": '"content_index":0,"part":{"type":"output_text","text":$whole,"annotations":[]}',
}
_WHOLE = '"content":[{"type":"output_text","text":$whole,"annotations":[]}]'
STREAMS: Final = {
    "vLLM: text": _dialect("vllm", _TEXT, _TEXTS),
    "vLLM: reasoning": _dialect("vllm", '"reasoning":$text', _TEXTS),
    "vLLM: tool arguments": _dialect("vllm", _call(_MORE), _ARGUMENTS),
    "vLLM: arguments of two calls in turns": attrs.evolve(
        _dialect("vllm", _call(_MORE, "$turn"), _COUNTED), turns=2
    ),
    "vLLM: /v1/completions": Stream(
        "vllm", _TEXTS, _LEGACY % ("$text", "null"), end=(_LEGACY % ('""', '"stop"'), "[DONE]")
    ),
    "vLLM: token ids": _dialect("vllm", _TEXT, _TOKEN_IDS, finish='null,"token_ids":[$token]'),
    "vLLM: an unknown number in each event": _dialect("vllm", _TEXT, _NEW, more=',"left":$total'),
    "vLLM: log probabilities": _dialect("vllm", _TEXT, _COUNTED, probs=_PROBS),
    "vLLM: usage in each event": _dialect("vllm", _TEXT, _COUNTED, more=_USAGE),
    **{
        f"vLLM: {count} choices": Stream(
            "vllm", _COUNTED, _chunk(_TEXT, choice="$turn"),
            end=(_chunk("", choice="$turn", finish='"stop"'), "[DONE]"), turns=count,
        ) for count in (2, 8)
    },
    "SGLang: text": _dialect("sglang", _TEXT, _TEXTS, finish='null,"matched_stop":null'),
    "SGLang: reasoning": _dialect("sglang", '"reasoning_content":$text', _TEXTS, finish='null,"matched_stop":null'),
    "SGLang: tool arguments": _dialect("sglang", _call(_MORE), _ARGUMENTS, finish='null,"matched_stop":null'),
    "SGLang: log probabilities": _dialect("sglang", _TEXT, _COUNTED, probs=_PROBS),
    "SGLang: usage in each event": _dialect("sglang", _TEXT, _COUNTED, more=_USAGE),
    "llama.cpp: text": _dialect("llamacpp", _TEXT, _TEXTS, more=',"system_fingerprint":"b1-0c1e570"'),
    "llama.cpp: reasoning": _dialect("llamacpp", '"reasoning_content":$text', _TEXTS),
    "llama.cpp: tool arguments": _dialect("llamacpp", _call(_MORE), _ARGUMENTS),
    "llama.cpp: timings in each event": _dialect("llamacpp", _TEXT, _NEW, more=_TIMINGS),
    "llama.cpp: /completion": Stream("llamacpp", _NEW, _NATIVE % "", end=_NATIVE_END),
    "llama.cpp: /completion, with tokens": Stream("llamacpp", _TOKEN_IDS, _NATIVE % "$token", end=_NATIVE_END),
    "OpenAI: padded text": _dialect("openai", _TEXT, _ARGUMENTS, more=',"obfuscation":"$pad"'),
    "OpenAI: padded tool arguments": _dialect("openai", _call(_MORE), _ARGUMENTS, more=',"obfuscation":"$pad"'),
    "DeepSeek: reasoning": _dialect(
        "deepseek", '"content":null,"reasoning_content":$text', _TEXTS, more=',"usage":null'
    ),
    "TGI: /generate_stream": Stream(
        "tgi", _TOKEN_IDS,
        '{"index":$n,"token":{"id":$token,"text":$text,"logprob":$logprob,"special":false},"generated_text":null,"details":null}',
        end=(
            '{"index":1001,"token":{"id":2,"text":"</s>","logprob":-0.015625,"special":true},"generated_text":$whole,'
            '"details":{"finish_reason":"eos_token","generated_tokens":1001,"seed":null,"input_length":20}}',
        ),
        opens="data:",
    ),
    "TGI: chat": _dialect("tgi", '"role":"assistant",' + _TEXT, _TEXTS, more=',"usage":null'),
    "Ollama: text": Stream("ollama", _OLLAMA, _SAID % "", end=_LINE_END, opens=""),
    "Ollama: thinking": Stream("ollama", _OLLAMA, _LINE % ('"thinking":$text', ""), end=_LINE_END, opens=""),
    "Ollama: /api/generate": Stream(
        "ollama", _OLLAMA, '{"model":"tiny","created_at":$stamp,"response":$text,"done":false}',
        end=('{"model":"tiny","created_at":$stamp,"response":"",' + _COUNTS,), opens="",
    ),
    "Ollama: log probabilities": Stream("ollama", _COUNTED, _SAID % _LISTED, end=_LINE_END, opens=""),
    "Anthropic: text": Stream(
        "anthropic", _NAMED_EVENTS, **_anthropic('"type":"text","text":""', '"type":"text_delta","text":$text')
    ),
    "Anthropic: thinking": Stream(
        "anthropic", _NAMED_EVENTS,
        **_anthropic('"type":"thinking","thinking":""', '"type":"thinking_delta","thinking":$text'),
    ),
    "Anthropic: tool arguments": Stream(
        "anthropic", _NAMED_EVENTS,
        **_anthropic(
            '"type":"tool_use","id":"toolu_1","name":"save","input":{}',
            '"type":"input_json_delta","partial_json":$arguments',
        ),
    ),
    "Gemini: text": Stream("gemini", _GEMINI, **_gemini('"text":$text', '"candidatesTokenCount":$n,')),
    "Gemini: thoughts": Stream(
        "gemini", _GEMINI, **_gemini('"text":$text,"thought":true', '"thoughtsTokenCount":$n,')
    ),
    "Gemini: 2 candidates": Stream(
        "gemini", _GEMINI, **_gemini('"text":$text', '"candidatesTokenCount":$n,'), turns=2
    ),
    "Responses: text": Stream(
        "openai_responses", _NAMED_EVENTS,
        **_responses(
            "output_text", '"content_index":0,"delta":$text,"logprobs":[],"obfuscation":"$pad"',
            _MESSAGE, '"content":[]', _WHOLE, _SPOKEN,
        ),
    ),
    "Responses: log probabilities": Stream(
        "openai_responses", _COUNTED,
        **_responses(
            "output_text", '"content_index":0,"delta":$text' + _LISTED,
            _MESSAGE, '"content":[]', _WHOLE, _SPOKEN,
        ),
    ),
    "Responses: reasoning": Stream(
        "openai_responses", _NAMED_EVENTS,
        **_responses(
            "reasoning_text", '"content_index":0,"delta":$text', '"type":"reasoning","summary":[]', '"content":[]',
            '"content":[{"type":"reasoning_text","text":$whole}]',
            {"reasoning_text.done": '"content_index":0,"text":$whole'},
        ),
    ),
    "Responses: summary of reasoning": Stream(
        "openai_responses", _NAMED_EVENTS,
        **_responses(
            "reasoning_summary_text", '"summary_index":0,"delta":$text,"obfuscation":"$pad"', '"type":"reasoning"',
            '"summary":[]', '"summary":[{"type":"summary_text","text":$whole}]',
            {"reasoning_summary_text.done": '"summary_index":0,"text":$whole'},
        ),
    ),
    "Responses: tool arguments": Stream(
        "openai_responses", _NAMED_EVENTS,
        **_responses(
            "function_call_arguments", '"delta":$arguments,"obfuscation":"$pad"',
            '"type":"function_call","call_id":"call_1","name":"save"', '"arguments":""', '"arguments":$call',
            {"function_call_arguments.done": '"arguments":$call'},
        ),
    ),
    "Cohere: text": Stream(
        "cohere", _NAMED_EVENTS,
        **_cohere("content", '"content":{"type":"text","text":""}', '"content":{"text":$text}'),
    ),
    "Cohere: thinking": Stream(
        "cohere", _NAMED_EVENTS,
        **_cohere("content", '"content":{"type":"thinking","thinking":""}', '"content":{"thinking":$text}'),
    ),
    "Cohere: plan": Stream("cohere", _NAMED_EVENTS, **_cohere("tool-plan", "", '"tool_plan":$text')),
    "Cohere: tool arguments": Stream(
        "cohere", _NAMED_EVENTS,
        **_cohere(
            "tool-call",
            '"tool_calls":{"id":"save_1","type":"function","function":{"name":"save","arguments":""}}',
            '"tool_calls":{"function":{"arguments":$arguments}}',
        ),
    ),
    "Cohere: log probabilities": Stream(
        "cohere", _COUNTED,
        **_cohere(
            "content", '"content":{"type":"text","text":""}', '"content":{"text":$text}',
            ',"logprobs":{"text":$text,"token_ids":[$token],"logprobs":[$logprob]}',
        ),
    ),
    "Bedrock, unframed: text": Stream("bedrock", _NAMED_EVENTS, **_bedrock('"text":$text')),
    "Bedrock, unframed: reasoning": Stream("bedrock", _NAMED_EVENTS, **_bedrock('"reasoningContent":{"text":$text}')),
    "Bedrock, unframed: tool arguments": Stream(
        "bedrock", _NAMED_EVENTS,
        **_bedrock('"toolUse":{"input":$arguments}', '"toolUse":{"toolUseId":"tooluse_1","name":"save"}'),
    ),
}  # fmt: skip
STREAMS |= {
    f"{name}, 20 pieces": attrs.evolve(STREAMS[name], pieces=20, bar=_SHORT)
    for name in ("vLLM: text", "Ollama: text")
}
