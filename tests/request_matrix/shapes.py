"""What the target's own types do not allow in a body: a missing field, an unknown one, another type, another word."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from request_types import bare, fields_of, required, variants, words

__all__ = ["SDKS", "Check", "checks", "missing_sdk"]

Check = Callable[[dict[str, Any]], list[str]]
SDKS: Final[dict[str, Any]] = json.loads((Path(__file__).parent / "sdks.json").read_text(encoding="utf-8"))
"""Versions, fields and places of the SDKs. ``scripts/request_words.py`` writes them."""


@functools.cache
def _members(kind: Any) -> list[Any]:
    """The variants of *kind*, in some order: types that differ in the order of their words are equal."""
    return variants(kind, models=False)


@functools.cache
def _types(kind: Any) -> list[Any]:
    """The words of the field ``type`` of an object."""
    if not hasattr(bare(kind), "__required_keys__"):
        return []
    return [word for one in _members(fields_of(bare(kind)).get("type", object)) for word in words(one)]


def misfits(kind: Any, value: Any, at: str = "") -> list[str]:
    """Return where *value* is not what the type *kind* says."""
    kind = bare(kind)
    members = _members(kind)
    if value is None or not members or kind in (Any, object):
        return []
    if len(members) > 1 or get_origin(kind) is Union:
        kind_said = value.get("type") if isinstance(value, dict) else None
        alike = [one for one in members if kind_said is None or kind_said in (_types(one) or [kind_said])]
        tries = [misfits(one, value, at) for one in alike or members]
        return min(tries, key=lambda found: (len(found), any(one.endswith("unknown word") for one in found)))
    if known := words(kind):
        return [] if value in known else [f"{at}: unknown word"]
    if hasattr(kind, "__required_keys__"):
        return _of_object(kind, value, at)
    origin = get_origin(kind) or kind
    if (isinstance(origin, type) and issubclass(origin, dict)) or "Mapping" in str(origin):
        return [] if isinstance(value, dict) else [f"{at}: an object is wanted"]
    if isinstance(origin, type) and origin is not str and issubclass(origin, Iterable):
        if not isinstance(value, list):
            return [f"{at}: a list is wanted"]
        inner = get_args(kind)[0]
        return [found for index, one in enumerate(value) for found in misfits(inner, one, f"{at}[{index}]")]
    allowed = {float: (int, float), str: (str,), int: (int,), bool: (bool,)}.get(kind)
    return [] if allowed is None or type(value) in allowed else [f"{at}: {kind.__name__} is wanted"]


def _of_object(kind: Any, value: Any, at: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: an object is wanted"]
    fields = fields_of(kind)
    found = [f"{at}.{name}: is missing" for name in sorted(required(kind)) if name not in value]
    for name, one in value.items():
        found += (
            misfits(fields[name], one, f"{at}.{name}") if name in fields else [f"{at}.{name}: unknown field"]
        )
    return found


def _openai() -> Check:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as Request

    return lambda body: misfits(Request, body)


def _openai_responses() -> Check:
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as Request

    return lambda body: misfits(Request, body)


def _anthropic() -> Check:
    """Three options are gone from the types of 2026, and still in the API's version of 2023, which is asked."""
    from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as Request

    older = {"temperature", "top_p", "top_k"}
    return lambda body: misfits(Request, {name: one for name, one in body.items() if name not in older})


def _bedrock() -> Check:
    import botocore.session  # type: ignore[import-untyped]
    import botocore.validate  # type: ignore[import-untyped]

    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model("Converse").input_shape
    validator = botocore.validate.ParamValidator()

    def check(body: dict[str, Any]) -> list[str]:
        report: str = validator.validate({"modelId": "m", **body}, shape).generate_report()
        return [line for line in report.split("\n") if line]

    return check


def _gemini() -> Check:
    from google.genai import types
    from pydantic import TypeAdapter, ValidationError

    kinds: dict[str, TypeAdapter[Any]] = {
        "contents": TypeAdapter(list[types.Content]),
        "systemInstruction": TypeAdapter(types.Content),
        "tools": TypeAdapter(list[types.Tool]),
        "toolConfig": TypeAdapter(types.ToolConfig),
        "safetySettings": TypeAdapter(list[types.SafetySetting]),
    }
    known = {*kinds, "generationConfig", "cachedContent", "serviceTier", "labels", "store"}

    def check(body: dict[str, Any]) -> list[str]:
        found = [f".{name}: unknown field" for name in body if name not in known]
        for name in kinds.keys() & body.keys():
            try:
                kinds[name].validate_python(body[name])
            except ValidationError as error:
                found += [
                    f".{name}.{'.'.join(map(str, one['loc']))}: {one['type']}" for one in error.errors()
                ]
        return found

    return check


def _fields(target: str) -> Check:
    """A server that refuses a field that it does not know, as Mistral's answers 422."""
    known = {*SDKS["fields"][target], "stream", "stream_options"}
    return lambda body: [f".{name}: unknown field" for name in body if name not in known]


_CHECKS: Final[dict[str, tuple[str | None, Callable[[], Check]]]] = {
    "openai": ("openai", _openai),
    "openai_responses": ("openai", _openai_responses),
    "anthropic": ("anthropic", _anthropic),
    "bedrock": ("botocore", _bedrock),
    "gemini": ("google-genai", _gemini),
    "cohere": (None, lambda: _fields("cohere")),
    "mistral": (None, lambda: _fields("mistral")),
    "ollama": (None, lambda: _fields("ollama")),
}
"""For each target, whose check there is: the package that it needs."""


def missing_sdk(target: str) -> str | None:
    """Return why *target* has no check here: its SDK is absent, or older than the one of the rows. Else ``None``."""
    package = _CHECKS[target][0] if target in _CHECKS else None
    if package is None:
        return None
    wanted = SDKS["versions"][package]
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"{package} is not installed"
    return None if found == wanted else f"{package} {found} is installed, and the rows are of {wanted}"


def checks() -> dict[str, Check]:
    """Return the checks whose SDKs are here."""
    return {target: make() for target, (_, make) in _CHECKS.items() if missing_sdk(target) is None}
