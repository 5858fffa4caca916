"""A schema reaches each server in a form that it takes, and what the server does not check is told and checked here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from crosswalk import ConfigurationError
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import OpenAIChatDialect, build_openai_chat_request, hookimpl
from crosswalk.service import (
    ChatRequest,
    HTTPRequest,
    ResponseFormat,
    ToolDefinition,
    build_http_request,
    read_request,
)
from crosswalk.service.json_answer import parser_for, with_schema
from crosswalk.types.json import thaw
from schema_types import TYPES

FACTS = Path(__file__).parents[3] / "../shared/providers/schema_rules.json"
needs_facts = pytest.mark.skipif(not FACTS.is_file(), reason=f"{FACTS.name} is not beside the project")
MODELS = {
    "openai": "gpt-5.1", "openai_responses": "gpt-5.1", "anthropic": "claude-opus-4-5",
    "bedrock": "us.anthropic.claude-opus-4-5-20251101-v1:0", "gemini": "gemini-3-flash-preview", "cohere": "command-a-03-2025",
    "groq": "openai/gpt-oss-120b", "mistral": "mistral-medium-2604", "xai": "grok-4.6", "deepseek": "deepseek-v4-pro",
    "zai": "glm-5.3", "minimax": "MiniMax-Text-01", "moonshot": "kimi-k2.6", "perplexity": "sonar-pro",
    "fireworks": "accounts/fireworks/models/qwen3", "together": "meta-llama/Llama-4", "openrouter": "qwen/qwen3.8-max",
    "cloudflare": "@cf/meta/llama-3.3-70b", "dashscope": "qwen-plus", "lmstudio": "qwen3", "llamacpp": "m",
    "ollama": "llama3.2", "vllm": "m", "sglang": "m", "tgi": "tgi",
}  # fmt: skip
ROUTED = ("anthropic/claude-opus-4-5", "openai/gpt-5.1", "google/gemini-3-flash", "x-ai/grok-4.6", "deepseek/deepseek-v4",
          "moonshotai/kimi-k2.6", "mistralai/mistral-medium")  # fmt: skip
SERVERS = [*MODELS.items(), *(("openrouter", model) for model in ROUTED)]
FORMS = (
    "response_format.json_schema.schema", "response_format.json_schema", "response_format.value", "text.format.schema",
    "output_config.format.schema", "outputConfig.textFormat.structure.jsonSchema.schema",
    "generationConfig.responseJsonSchema", "format",
)  # fmt: skip
TOOL = ToolDefinition("f", "Does it.", {"type": "object", "properties": {}})


@cache
def wanted(name: str) -> ResponseFormat:
    """What :meth:`LLMService.complete_json` asks for."""
    request = with_schema(ChatRequest("Hi"), parser_for(TYPES[name][0]), instruct=False)
    assert request.response_format is not None
    return request.response_format


def asked(name: str, model: str, **options: Any) -> ChatRequest:
    return ChatRequest("Hi", model=model, response_format=wanted(name), **options)


def schema_in(body: dict[str, Any]) -> dict[str, Any] | None:
    """The schema in *body*, wherever the server's form has it."""
    for path in FORMS:
        found: Any = body
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, str) and found.startswith("{"):
            found = json.loads(found)
        if isinstance(found, dict):
            return found
    return None


def parts(schema: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in *schema* with its path."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for keyword in ("properties", "$defs"):
        for name, inner in schema.get(keyword, {}).items():
            yield from parts(inner, f"{path}.{name}")
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in schema.get(keyword, ()):
            yield from parts(inner, path)
    for keyword in ("items", "additionalProperties"):
        yield from parts(schema.get(keyword), f"{path}[]")


def refers_to_itself(schema: dict[str, Any]) -> bool:
    inside = {
        f"#/$defs/{name}": set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(each)))
        for name, each in schema.get("$defs", {}).items()
    }
    for _ in inside:
        inside = {name: found.union(*(inside[one] for one in found)) for name, found in inside.items()}
    return any(name in found for name, found in inside.items())


ANNOTATIONS = {"$schema", "title", "default", "discriminator", "$id"}


def judged(rules: dict[str, Any], facts: dict[str, Any], body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a published rule says against *body*: ``refused`` or ``ignored``, and what."""
    schema = schema_in(body)
    keywords = (
        rules["keywords"] if isinstance(rules["keywords"], dict) else facts[rules["engine"]]["keywords"]
    )
    if schema is None:
        return
    if rules["kind"] == "json_object":
        yield "refused", "a schema"
        return
    form: Any = body.get("response_format", body.get("text", {}).get("format", {}))
    about = form.get("json_schema", form) if isinstance(form, dict) else {}
    if about.get("strict") is False and rules["required"].startswith("all"):
        return  # none of the rules holds
    if rules["root"].startswith("object") and schema.get("type") != "object":
        yield "refused", "root"
    if rules["recursion"].startswith("refused") and refers_to_itself(schema):
        yield "refused", "recursion"
    if rules["names"]["schema"].startswith("^") and "name" in about:
        pattern = rules["names"]["schema"].partition(" ")[0]
        if not re.search(pattern, about["name"], re.ASCII):
            yield "refused", f"name {about['name']}"
    engine = facts[rules["engine"]] if rules.get("engine") in facts else rules
    for path, part in parts(schema):
        for keyword, value in part.items():
            status = keywords["status"].get(keyword, keywords["unlisted"])
            if keyword in rules.get("array", {}):
                status = "ok" if value <= 1 else "refused"
            if status == "refused" or (status == "ignored" and keyword not in ANNOTATIONS):
                yield status, f"{keyword} at {path}"
            if keyword == "format" and value not in engine["formats"]["allowed"]:
                status = engine["formats"]["others"].partition(" ")[0]
                if status in ("refused", "ignored"):
                    yield status, f"format {value} at {path}"
            if keyword == "pattern":
                yield from (
                    (status, f"pattern {value} at {path}") for status in of_pattern(value, part, engine)
                )
            is_bound = keyword in ("minimum", "maximum") and part.get("type") != "integer"
            if is_bound and "integer, not number" in keywords.get("notes", ""):
                yield "ignored", f"{keyword} of a number at {path}"
            if (
                keyword == "$ref"
                and len(part) > 1
                and "no siblings" in rules["recursion"] + rules.get("refs", "")
            ):
                yield "refused", f"beside $ref at {path}"
        if part.get("type") == "object" or "properties" in part:
            extra = part.get("additionalProperties", True)
            if rules["additional_properties"].startswith("must_be_false") and extra is not False:
                yield "refused", f"additionalProperties at {path}"
            if rules["additional_properties"].startswith("free objects") and extra is not False:
                yield "refused", f"a free object at {path}"
            if rules["required"].startswith("all") and set(part.get("required", ())) != set(
                part.get("properties", ())
            ):
                yield "refused", f"required at {path}"
        if "structure" in rules:
            yield from (("refused", f"{what} at {path}") for what in of_moonshot(part, path))


def of_pattern(pattern: str, part: dict[str, Any], rules: dict[str, Any]) -> Iterator[str]:
    about = rules["pattern"]
    if re.search(r"\(\?<?[=!]", pattern) and "lookaround" in about:
        yield about["lookaround"].split()[0]
    if about.get("any", "").split(" ")[0] in ("ignored", "refused"):
        yield about["any"].split(" ")[0]
    if "must" in about and (
        not re.fullmatch(r"\^.*\$", pattern)
        or r"\d" in pattern
        or "(?" in pattern
        or part.keys() & {"minLength", "maxLength"}
    ):
        yield "ignored"
    if "with lengths or format" in about and part.keys() & {"minLength", "maxLength", "format"}:
        yield "refused"


def of_moonshot(part: dict[str, Any], path: str) -> Iterator[str]:
    if {"anyOf", "$ref"} & part.keys():
        if part.keys() - {"anyOf", "$ref", "description", "title", "$defs"}:
            yield "something beside anyOf or $ref"
    elif not isinstance(part.get("type"), str):
        yield "no type"
    if "enum" in part and len({type(value) for value in part["enum"]}) > 1:
        yield "an enum of several types"


def test_a_judge_knows_what_failed_before() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}},
        "additionalProperties": False,
    }
    rules = {
        "keywords": {"status": {"minimum": "refused"}, "unlisted": "unknown"}, "kind": "json_schema", "required": "any",
        "root": "object", "recursion": "ok", "names": {"schema": "none"}, "additional_properties": "must_be_false",
    }  # fmt: skip
    assert [*judged(rules, {}, {"output_config": {"format": {"schema": schema}}})] == [
        ("refused", "minimum at $.n")
    ]


@pytest.mark.untraced
@needs_facts
@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_no_published_rule_is_broken(provider: str, model: str) -> None:
    facts = json.loads(FACTS.read_text(encoding="utf-8"))["providers"]
    assert facts.keys() == MODELS.keys()
    rules = facts[provider]
    target = next(
        (one for route, one in rules.get("by_model", {}).items() if model.startswith(route[:-1])), provider
    )
    for name in TYPES:
        for options in ({}, {"stream": True}, {"tools": [TOOL]} if provider != "perplexity" else {}):
            built = build_http_request(asked(name, model, **options), provider)
            assert [*judged(facts[target], facts, built.body)] == [], name
            combines = {"stream": "streaming", "tools": "tools"}
            for option, company in combines.items():
                stated = facts[target]["combines"][company]
                if option in options and re.match("no\\b|response_format does not apply", stated):
                    assert schema_in(built.body) is None, (name, option)


LIMITS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems",
    "pattern", "format", "prefixItems",
)  # fmt: skip


def limits_in(schema: Any) -> Iterator[tuple[str, Any]]:
    for _, part in parts(schema):
        yield from ((keyword, part[keyword]) for keyword in LIMITS if keyword in part)


def is_said(keyword: str, value: Any, sent: dict[str, Any] | None, built: HTTPRequest) -> bool:
    """Whether a limit is enforced, or told to the model and named."""
    if sent is not None and (keyword, value) in limits_in(sent):
        return True
    by = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}.get(keyword)
    if sent is not None and by is not None and (by[0], value + by[1]) in limits_in(sent):
        return True  # for integers it is the same
    strings = list(texts(built.body)) + list(texts(sent))
    words = f"{keyword}: {json.dumps(value, separators=(',', ':'))}"
    in_schema = f'"{keyword}": {json.dumps(value, indent=2)}'
    is_told = any(
        words in text or re.sub(r"\s", "", in_schema) in re.sub(r"\s", "", text) for text in strings
    )
    named = {one.field for one in built.adaptations}
    return is_told and not named.isdisjoint({"response_format", f"response_format.{keyword}"})


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(each)


@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_each_limit_is_enforced_or_told_and_named(provider: str, model: str) -> None:
    for name in TYPES:
        built = build_http_request(asked(name, model), provider)
        plain = thaw(wanted(name).schema)
        missing = [one for one in limits_in(plain) if not is_said(*one, schema_in(built.body), built)]
        assert missing == [], name


@pytest.mark.untraced
@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_a_valid_answer_is_valid_for_the_server(provider: str, model: str) -> None:
    for name, (_, valid, _) in TYPES.items():
        sent = schema_in(build_http_request(asked(name, model), provider).body)
        if sent is not None:
            jsonschema.Draft202012Validator.check_schema(sent)
            assert [
                each.message for each in jsonschema.Draft202012Validator(sent).iter_errors(json.loads(valid))
            ] == [], name


@pytest.mark.parametrize("name", TYPES)
def test_what_no_server_checks_is_checked_here(name: str) -> None:
    kind, valid, invalid = TYPES[name]
    parser = parser_for(kind)
    assert parser.parse(valid).ok
    assert not parser.parse(invalid).ok


# ------------------------------------------------------------------------------------ what may not be combined, and tools

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
BOUND = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


def changes(built: HTTPRequest) -> dict[str, Any]:
    places = ("response_format", "tools")
    return {one.field: one.sent for one in built.adaptations if re.split(r"[.\[]", one.field)[0] in places}


def formatted(provider: str, model: str, schema: dict[str, Any] = CITY, **options: Any) -> HTTPRequest:
    return build_http_request(
        ChatRequest(
            "Hi", model=model, response_format=ResponseFormat(schema, **options.pop("format", {})), **options
        ),
        provider,
    )


@pytest.mark.parametrize(
    ("provider", "model", "options", "sent"),
    [
        ("groq", "openai/gpt-oss-20b", {}, "json_schema"),
        ("groq", "openai/gpt-oss-20b", {"tools": [TOOL]}, None),
        ("groq", "openai/gpt-oss-20b", {"stream": True}, None),
        ("groq", "llama-3.3-70b-versatile", {}, "json_object"),
        ("cohere", "command-a-03-2025", {"tools": [TOOL]}, None),
        ("cohere", "command-a-03-2025", {"stream": True}, "json_object"),
        ("cloudflare", "@cf/meta/llama-3.3-70b", {"stream": True}, None),
        ("cloudflare", "@cf/openai/gpt-oss-120b", {}, "json_schema"),
        ("minimax", "MiniMax-Text-01", {}, "json_schema"),
        ("minimax", "MiniMax-Text-01", {"stream": True}, None),
        ("minimax", "MiniMax-M2", {}, None),
        ("deepseek", "deepseek-v4-pro", {"tools": [TOOL]}, "json_object"),
        ("zai", "glm-5.3", {"stream": True}, "json_object"),
    ],
)
def test_what_does_not_go_together_is_told_in_words(
    provider: str, model: str, options: dict[str, Any], sent: Any
) -> None:
    built = formatted(provider, model, **options)
    assert built.body.get("response_format", {}).get("type") == sent
    is_told = schema_in(built.body) is None
    assert changes(built) == ({"response_format": sent or "text"} if is_told else {})
    first = built.body["messages"][0]
    assert ('"city"' in str(first["content"])) is is_told
    assert not [one for one in built.dropped if one.field == "response_format"]


@pytest.mark.parametrize(("model", "is_sent"), [("gemini-2.5-pro", False), ("gemini-3-flash-preview", True)])
def test_gemini_takes_a_schema_beside_tools_since_3(model: str, is_sent: bool) -> None:
    built = formatted("gemini", model, tools=[TOOL])
    assert ("responseJsonSchema" in built.body.get("generationConfig", {})) is is_sent
    assert changes(built) == ({} if is_sent else {"response_format": "text"})


def test_only_two_models_of_groq_take_a_strict_schema() -> None:
    strict = formatted("groq", "openai/gpt-oss-120b")
    loose = formatted("groq", "moonshotai/kimi-k2-instruct")
    assert strict.body["response_format"]["json_schema"]["strict"] is True
    assert loose.body["response_format"]["json_schema"] == {"name": "answer", "schema": CITY, "strict": False}
    assert (changes(strict), changes(loose)) == ({}, {"response_format.strict": False})
    said = formatted("groq", "moonshotai/kimi-k2-instruct", format={"strict": False})
    assert changes(said) == {}


def test_what_strict_mode_cannot_say_is_sent_without_it_and_named() -> None:
    tree = {"type": "object", "properties": {"any": {}}, "required": ["any"]}
    built = formatted("openai", "gpt-5.1", tree)
    assert built.body["response_format"]["json_schema"] == {"name": "answer", "schema": tree, "strict": False}
    (change,) = built.adaptations
    assert (change.field, change.reason) == (
        "response_format.strict",
        "OpenAI's strict mode does not take any value at $.any",
    )
    assert changes(formatted("openai", "gpt-5.1", tree, format={"strict": False})) == {}
    assert changes(formatted("openai", "gpt-5.1", {"type": "array"})) == {"response_format": "json_object"}


def test_an_optional_key_becomes_null_only_for_who_reads_a_null_so() -> None:
    optional = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert changes(formatted("openai", "gpt-5.1", optional)) == {"response_format.strict": False}
    built = formatted("openai", "gpt-5.1", optional, format={"null_is_absent": True})
    assert schema_in(built.body) == {
        "type": "object", "additionalProperties": False, "required": ["n"],
        "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    }  # fmt: skip


def test_a_schema_is_told_once_and_before_the_marks_of_the_cache() -> None:
    parser = parser_for(CITY)
    request = ChatRequest("Hi", model="deepseek-v4-pro", cache_marks=[0, -1, "system"])
    for instruct in (True, False):
        wanted = with_schema(request, parser, instruct=instruct)
        assert [mark.after for mark in wanted.cache_marks] == [instruct, -1, "system"]
        said = build_http_request(wanted, "deepseek").body["messages"]
        assert [one["role"] for one in said] == ["system", "user"]


def test_a_model_that_does_not_see_the_schema_is_told_what_is_not_enforced() -> None:
    even = {**CITY, "properties": {"n": {"type": "integer", "multipleOf": 2}}, "required": ["n"]}
    plain, told = formatted("llamacpp", "m"), formatted("llamacpp", "m", even)
    assert [one["role"] for one in plain.body["messages"]] == ["user"]
    assert '"multipleOf": 2' in told.body["messages"][0]["content"]
    assert changes(told) == {"response_format.multipleOf": "description"}


@pytest.mark.parametrize(
    ("provider", "tool", "parameters", "named"),
    [
        ("anthropic", {"strict": True}, {**BOUND, "properties": {"n": {"type": "integer", "description": "{minimum: 1}"}},
                                         "additionalProperties": False}, {"tools[0].parameters.minimum": "description"}),
        ("anthropic", {}, BOUND, {}),
        ("openai", {"strict": True}, {**BOUND, "additionalProperties": False}, {}),
        ("vllm", {"strict": True}, BOUND, {}),
        ("moonshot", {}, BOUND, {}),
    ],
)  # fmt: skip
def test_a_strict_tool_keeps_the_rules(
    provider: str, tool: dict[str, Any], parameters: dict[str, Any], named: Any
) -> None:
    request = ChatRequest("Hi", model="m", tools=[ToolDefinition("f", "Does it.", BOUND, **tool)])
    built = build_http_request(request, provider)
    (sent,) = built.body["tools"]
    assert (sent.get("input_schema") or sent["function"]["parameters"]) == parameters
    assert changes(built) == named


@pytest.mark.parametrize("provider", ["vllm", "sglang"])
@pytest.mark.parametrize(
    "kinds",
    [
        [{"type": "string"}, {"type": "integer"}],
        [{"type": "string", "maxLength": 3}, {"type": "string", "minLength": 2}],
        [{"$ref": "#/$defs/a"}, {"type": "null"}],
    ],
)
def test_an_engine_that_reads_one_of_as_any_of_gets_any_of(
    provider: str, kinds: list[dict[str, Any]]
) -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"oneOf": kinds}, "y": {"type": "array", "items": {"oneOf": kinds}}},
        "$defs": {"a": {"type": "boolean"}},
    }
    built = formatted(provider, "m", schema)
    sent = schema_in(built.body)
    assert sent is not None
    assert "oneOf" not in json.dumps(sent)
    assert sent["properties"]["x"] == {"anyOf": kinds}
    assert changes(built) == {}


def parameters(*, required: int = 0, optional: int = 0, unions: int = 0) -> dict[str, Any]:
    """The schema of an object with so many keys of each kind. A union is required."""
    properties = {f"r{n}": {"type": "string"} for n in range(required)}
    properties |= {f"u{n}": {"anyOf": [{"type": "integer"}, {"type": "null"}]} for n in range(unions)}
    needed = [*properties]
    properties |= {f"o{n}": {"type": "string"} for n in range(optional)}
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


@pytest.mark.parametrize(
    ("kinds", "answer", "loose"),
    [
        ([parameters(required=1)] * 20, None, []),
        ([parameters(required=1)] * 22, None, [20, 21]),
        ([parameters(optional=12)] * 2, None, []),
        ([parameters(optional=12), parameters(optional=13), parameters(optional=12), parameters(required=1)], None, [1]),
        ([parameters(unions=9), parameters(unions=8), parameters(unions=7)], None, [1]),
        ([parameters(optional=20), parameters(optional=4)], parameters(optional=4), [1]),
        ([parameters(optional=20), parameters(optional=4)], parameters(required=4), []),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("provider", "model"), [("anthropic", "claude-sonnet-4-5"), ("bedrock", "claude-sonnet-4-5")]
)
def test_a_strict_tool_above_the_limits_of_a_request_is_not_strict_and_is_named(
    kinds: list[dict[str, Any]], answer: dict[str, Any] | None, loose: list[int], provider: str, model: str
) -> None:
    tools = [ToolDefinition(f"f{n}", "F.", kind, strict=True) for n, kind in enumerate(kinds)]
    wanted = None if answer is None else ResponseFormat(answer)
    built = build_http_request(ChatRequest("Hi", model=model, tools=tools, response_format=wanted), provider)
    clamped = [one for one in built.adaptations if one.kind == "clamped" and one.field.endswith(".strict")]
    assert [one.field for one in clamped] == [f"tools[{n}].strict" for n in loose]
    assert all("in one request (at most" in one.reason for one in clamped)


def test_a_tool_that_is_not_strict_takes_no_room() -> None:
    tools = [ToolDefinition(f"f{n}", "F.", parameters(required=1), strict=n % 2 == 0) for n in range(40)]
    built = build_http_request(ChatRequest("Hi", model="claude-sonnet-4-5", tools=tools), "anthropic")
    assert changes(built) == {}
    assert sum(tool.get("strict", False) for tool in built.body["tools"]) == 20


def test_a_tool_that_cannot_be_strict_is_not_and_is_named() -> None:
    free = {"type": "object", "properties": {"a": {}}}
    tools = [ToolDefinition("f", "F.", free, strict=True), ToolDefinition("g", "G.", kind="custom")]
    built = build_http_request(ChatRequest("Hi", model="gpt-5.1", tools=tools), "openai")
    assert built.body["tools"][0]["function"] == {
        "name": "f",
        "description": "F.",
        "parameters": free,
        "strict": False,
    }
    assert changes(built) == {"tools[0].strict": False}
    always = build_http_request(
        ChatRequest("Hi", model="kimi-k2", tools=[ToolDefinition("f", "F.", free)]), "moonshot"
    )
    assert always.body["tools"][0]["function"]["parameters"] == free
    assert changes(always) == {}


def test_what_a_client_wrote_for_this_server_passes_as_it_came() -> None:
    body = {
        "model": "gpt-5.1",
        "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "Größe", "schema": {"type": "object"}, "strict": True},
        },
    }
    assert (
        build_http_request(read_request(body, "openai-chat").request, "openai").body["response_format"]
        == body["response_format"]
    )
    other = build_http_request(read_request(body, "openai-chat").request.for_model("gpt-4o"), "openai")
    assert schema_in(other.body) == {"type": "object"}
    assert changes(other) == {"response_format.strict": False}


def test_the_rules_of_a_users_file_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.toml"
    monkeypatch.setenv("CROSSWALK_MODEL_CLASSES", str(file))
    file.write_text(
        '[[schemas]]\nproviders = ["openai"]\nmodels = ["our/*"]\nid = "ours"\nanswer = "text"\n', "utf-8"
    )
    assert changes(formatted("openai", "our/model")) == {"response_format": "text"}
    assert changes(formatted("openai", "model")) == {}
    assert changes(formatted("vllm", "our/model")) == {}
    file = tmp_path / "broken.toml"
    monkeypatch.setenv("CROSSWALK_MODEL_CLASSES", str(file))
    file.write_text('[[schemas]]\nproviders = ["openai"]\nanswer = "prose"\n', "utf-8")
    with pytest.raises(ConfigurationError, match=r"schemas\[0\]: answer must be one of"):
        formatted("openai", "model")


def test_a_server_without_rules_gets_the_plain_schema() -> None:
    class Own(OpenAIChatDialect):
        title = "Own"

        @hookimpl
        def build_request(self, request: ChatRequest) -> HTTPRequest:
            return build_openai_chat_request(request)

    known = Registry()
    known.register(Own(), "own")
    wanted = ResponseFormat(BOUND, name="Größe")
    built = build_http_request(
        ChatRequest("Hi", model="m", response_format=wanted, tools=[TOOL]), "own", registry=known
    )
    sent = built.body["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"], sent["schema"]["properties"]["n"]["minimum"]) == ("Gr__e", True, 1)
    assert build_http_request(ChatRequest("Hi", model="m", tools=[TOOL]), "own", registry=known).body["tools"]
