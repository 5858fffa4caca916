"""A schema reaches each server in a form that it takes, and what the server does not check is told and checked here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from crosswalk.service import ChatRequest, HTTPRequest, ToolDefinition, build_http_request
from crosswalk.service.json_answer import parser_for, with_schema
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


def asked(kind: Any, model: str, **options: Any) -> ChatRequest:
    return with_schema(ChatRequest("Hi", model=model, **options), parser_for(kind), instruct=False)


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


@needs_facts
@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_no_published_rule_is_broken(provider: str, model: str) -> None:
    facts = json.loads(FACTS.read_text(encoding="utf-8"))["providers"]
    assert facts.keys() == MODELS.keys()
    rules = facts[provider]
    target = next(
        (one for route, one in rules.get("by_model", {}).items() if model.startswith(route[:-1])), provider
    )
    for name, (kind, _, _) in TYPES.items():
        for options in ({}, {"stream": True}, {"tools": [TOOL]} if provider != "perplexity" else {}):
            built = build_http_request(asked(kind, model, **options), provider)
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
    named = {one.option for one in built.adapted}
    return is_told and not named.isdisjoint({"response_format", f"response_format.{keyword}"})


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(each)


@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_each_limit_is_enforced_or_told_and_named(provider: str, model: str) -> None:
    for name, (kind, _, _) in TYPES.items():
        parser = parser_for(kind)
        built = build_http_request(asked(kind, model), provider)
        plain = parser.schema.server_schema()
        missing = [one for one in limits_in(plain) if not is_said(*one, schema_in(built.body), built)]
        assert missing == [], name


@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_a_valid_answer_is_valid_for_the_server(provider: str, model: str) -> None:
    for name, (kind, valid, _) in TYPES.items():
        sent = schema_in(build_http_request(asked(kind, model), provider).body)
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
