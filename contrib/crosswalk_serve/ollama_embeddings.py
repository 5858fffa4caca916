"""Ollama's two requests for embeddings, for servers that have OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crosswalk.types import dump_json, load_json

__all__ = ["PATHS", "answer", "request"]

_OLD: Final = "/api/embeddings"
"""It takes one ``prompt``."""
PATHS: Final = ("/api/embed", _OLD)
_KNOWN: Final = frozenset({"model", "input", "prompt", "dimensions", "keep_alive"})
"""The fields with a meaning for OpenAI's servers, and ``keep_alive``, whose models stay in memory."""


def request(fields: Mapping[str, Any], model: str) -> tuple[bytes, list[str]]:
    """Return the body for OpenAI's ``/v1/embeddings``, and the names of the dropped fields."""
    body: dict[str, Any] = {"model": model, "input": fields.get("input", fields.get("prompt"))}
    if fields.get("dimensions") is not None:
        body["dimensions"] = fields["dimensions"]
    return dump_json(body), [f"request.{name}" for name in fields if name not in _KNOWN]


def answer(path: str, model: str, body: bytes) -> bytes:
    """Return OpenAI's answer *body* as Ollama's to a request for *path* with the name *model*.

    Raises:
        ValueError, LookupError, TypeError: it is not such an answer.
    """
    value = load_json(body)
    rows = [item["embedding"] for item in value["data"]]
    if path == _OLD:
        return dump_json({"embedding": rows[0]})
    count = (value.get("usage") or {}).get("prompt_tokens")
    counted = {} if count is None else {"prompt_eval_count": count}
    return dump_json({"model": model, "embeddings": rows, **counted})
