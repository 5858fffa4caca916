"""What to tell a model so that it answers in the form of a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from crosswalk.structured.schema import Schema

__all__ = ["instructions_for"]


def instructions_for(schema: Schema[Any], example: Any = None) -> str:
    """Instructions to append to a system prompt.

    Args:
        schema: what the answer has to look like.
        example: a valid answer as plain JSON values, to be shown; ``None`` for none.

    Raises:
        TypeError: *example* is no JSON.
    """
    parts = [
        "Answer with one JSON object and nothing else: no text before or after it, no Markdown fence, no comments.",
        f"It must conform to this JSON Schema:\n\n{_shown(schema.json_schema())}",
    ]
    if schema.invariants:
        rules = "\n".join(f"- {rule.message}" for rule in schema.invariants)
        parts.append(f"These rules must hold:\n\n{rules}")
    if example is not None:
        parts.append(f"For example:\n\n{_shown(example)}")
    return "\n\n".join(parts) + "\n"


def _shown(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
