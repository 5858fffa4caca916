"""Write one answer in three wire formats, whole and streamed, and list the parts that each of them cannot express.

    python examples/convert_forms.py

The answer is from Anthropic, with signed reasoning and a tool call.
"""

from __future__ import annotations

from crosswalk import normalize, normalize_stream
from crosswalk.convert import (
    WireForm,
    convert,
    convert_stream,
    fold,
    from_response,
    to_response,
    unfold,
)

ANSWER = b"""{
  "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x",
  "content": [
    {"type": "thinking", "thinking": "The moon first.", "signature": "EqQB"},
    {"type": "text", "text": "I'll check.", "citations": null},
    {"type": "tool_use", "id": "toolu_1", "name": "moon_phase", "input": {"day": "2026-09-01"}}
  ],
  "stop_reason": "tool_use", "stop_sequence": null,
  "usage": {"input_tokens": 12, "cache_read_input_tokens": 2048, "output_tokens": 60}
}"""


def main() -> None:
    answer = normalize(ANSWER, "anthropic")
    for form in WireForm:
        converted = convert(answer, form, losses="report")
        print(
            f"{form}: {len(converted.value)} bytes; signature named: {signature_is_named(converted.report)}"
        )

    stream = convert_stream(normalize_stream([ANSWER], "anthropic"), "openai-chat")
    print(f"streamed: {sum(1 for _ in stream)} events; {len(stream.report.losses)} fields named")

    response = to_response(answer).value
    print("items:", ", ".join(item.type or "?" for item in response.output))
    print("and back:", from_response(response).tool_calls[0].name)

    (turn,) = fold(response.output)
    print("folded:", turn.message)
    print("unfolded:", ", ".join(type(item).__name__ for item in unfold([turn])))


def signature_is_named(report: object) -> bool:
    return "segments[0].metadata.signature" in str(report)


if __name__ == "__main__":
    main()
