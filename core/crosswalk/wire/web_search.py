"""The web search of a server, as each format asks for it.

The option ``web_search_options`` is the one of Chat Completions: ``{"search_context_size": …, "user_location":
{"type": "approximate", "approximate": {"city": …}}}``. The other formats have a tool instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crosswalk.wire import gemini, messages

_TOOLS: Final[Mapping[str, tuple[Mapping[str, Any], frozenset[str]]]] = {
    "responses": ({"type": "web_search"}, frozenset({"search_context_size", "user_location"})),
    "messages": (
        {"type": messages.HOSTED_TOOLS["web_search"], "name": "web_search"},
        frozenset({"user_location"}),
    ),
    "gemini": ({gemini.HOSTED_TOOLS["web_search"]: {}}, frozenset()),
}
"""The tool of each format, and the options that it has."""


def write_web_search(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option *value* as the tool of *format*, or ``None`` if the tool has no such option."""
    if format == "chat":
        return value  # type: ignore[no-any-return]
    tool, known = _TOOLS[format]
    if not (isinstance(value, dict) and value.keys() <= known):
        return None
    written = {**tool, **value}
    location = value.get("user_location")
    if location is not None:
        if not (isinstance(location, dict) and isinstance(location.get("approximate"), dict)):
            return None
        written["user_location"] = {"type": location.get("type", "approximate"), **location["approximate"]}
    return written
