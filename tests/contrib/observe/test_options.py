"""A record's options hold only what was named as an option: no content, and no person's name."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk_observe import Watcher

from .conftest import Seen

SCHEMA = {"type": "object", "properties": {"illness": {"description": "of Jane Doe"}}}


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ({"temperature": 0.5, "stream": True, "seed": 7}, {"temperature": 0.5, "stream": True, "seed": 7}),
        ({"stop": ["a", "b"], "service_tier": "flex"}, {"stop": ["a", "b"], "service_tier": "flex"}),
        ({"options": {"num_batch": 9, "tfs_z": 0.5}}, {"options": {"num_batch": 9, "tfs_z": 0.5}}),
        ({"thinking": {"display": "omitted"}, "metadata": {"n": 7}}, {"thinking": {"display": "omitted"}}),
        ({"options": {"num_ctx": 9, "system": "Jane Doe"}}, {"options": {"num_ctx": 9}}),
        ({"generationConfig": {"topK": 3, "responseSchema": SCHEMA}}, {"generationConfig": {"topK": 3}}),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}}, {"thinking": {"type": "enabled", "budget_tokens": 9}}),
        ({"format": SCHEMA}, {"format": {"type": "object"}}),
        ({"format": "json", "think": "high"}, {"format": "json", "think": "high"}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "Jane", "schema": SCHEMA}}},
            {"response_format": {"type": "json_schema"}},
        ),
        (
            {
                "messages": [{"role": "user", "content": "Jane Doe"}],
                "safety_identifier": "jane@example.com",
                "prompt_cache_key": "jane",
                "web_search_options": {"user_location": {"city": "Jena"}},
                "conversation": "conv_1",
                "user": "jane",
                "metadata": {"type": "jane"},
                "temperature": "Jane Doe",
                "stop": [{"text": "Jane Doe"}],
                "unheard_of": "Jane Doe",
                "social_security_number": 78051120,
            },
            {},
        ),
    ],
)  # fmt: skip
def test_options_are_what_is_named_as_one(body: dict[str, Any], options: dict[str, Any]) -> None:
    seen = Seen()
    with Watcher(seen, in_background=False) as watcher:
        content = orjson.dumps({"model": "tiny", **body})
        exchange = watcher.begin("POST", "https://api.openai.com/v1/chat/completions", {}, content)
        assert exchange is not None
        exchange.answered(500, {})
        exchange.ended()
    assert seen.one.request.options == options
    assert seen.one.request.model == "tiny"
