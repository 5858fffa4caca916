"""A JSON Schema as TypeScript writes types: a third of the tokens, and models read it well."""

from __future__ import annotations

from typing import Any, Final

import orjson

__all__ = ["as_typescript"]

_NAMES: Final = {"integer": "integer", "array": "any[]", "object": "object"}


def as_typescript(schema: dict[str, Any]) -> str:
    """The type that *schema* describes, the types that it refers to before it."""
    parts = [f"type {name} = {_type(each, '')}" for name, each in schema.get("$defs", {}).items()]
    return "\n\n".join([*parts, _type(schema, "")])


def _type(schema: Any, indent: str) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        return " | ".join(orjson.dumps(word).decode() for word in words)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(_type(each, indent) for each in schema[key])
    if schema.get("properties"):
        return _object(schema, indent)
    if "prefixItems" in schema:
        return f"[{', '.join(_type(each, indent) for each in schema['prefixItems'])}]"
    if "items" in schema:
        item = _type(schema["items"], indent)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"{{ [key: string]: {_type(schema['additionalProperties'], indent)} }}"
    types = schema.get("type", "any")
    return " | ".join(_NAMES.get(each, each) for each in ([types] if isinstance(types, str) else types))


def _object(schema: dict[str, Any], indent: str) -> str:
    required = schema.get("required", ())
    lines = []
    for key, each in schema["properties"].items():
        name = key if key.isidentifier() else orjson.dumps(key).decode()
        optional = "" if key in required else "?"
        comment = _comment(each)
        lines.append(f"{indent}  {name}{optional}: {_type(each, indent + '  ')};{comment}")
    return "\n".join(["{", *lines, f"{indent}}}"])


def _comment(schema: Any) -> str:
    """The parts that the type does not express: the description, and the rules."""
    if not isinstance(schema, dict):
        return ""
    rules = [
        f"{key} {schema[key]}"
        for key in ("minimum", "maximum", "minLength", "maxLength", "pattern", "format")
        if key in schema
    ]
    raw = [text for text in (" ".join(str(schema.get("description", "")).split()), ", ".join(rules)) if text]
    return f"  // {'; '.join(raw)}" if raw else ""
