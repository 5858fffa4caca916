"""Every accepted document is read back, however long it is."""

from __future__ import annotations

import orjson
import pytest

from crosswalk import Limits, normalize
from crosswalk.convert import convert
from crosswalk.mapping import normalize as module


def test_an_answer_beyond_the_usual_limits_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"role": "assistant", "content": "long " * 100}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = orjson.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )
    response = normalize(body, "openai", limits=Limits(line_bytes=10_000))
    wide = {form: convert(response, form) for form in ("openai-chat", "anthropic")}
    monkeypatch.setattr(module, "DEFAULT", Limits(line_bytes=100))
    for form, made in wide.items():
        assert convert(response, form) == made
