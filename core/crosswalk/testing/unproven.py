"""The fields that a look-alike of OpenAI maps by inheritance or declaration, without a capture that shows them.

Such a field is not wrong, but nothing proves that it is right: the server may have another name for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture
from crosswalk.testing.pairing import normalized

_Shows = Callable[[dict[str, Any]], Any]


def _segment(kind: str) -> _Shows:
    return lambda response: any(one["type"] == kind for one in response.get("segments", ()))


def _count(name: str) -> _Shows:
    return lambda response: response["usage"].get(name)


_FIELDS: Final[dict[str, _Shows]] = {
    "reasoning": _segment("reasoning"),
    "refusal": _segment("refusal"),
    "tool calls": lambda response: response["message"].get("tool_calls"),
    "log probabilities": lambda response: response.get("logprobs"),
    "cached tokens": _count("cached_tokens"),
    "reasoning tokens": _count("reasoning_tokens"),
}


def unproven(mapper: Mapper, captures: Iterable[Capture]) -> list[str]:
    """Return the typed fields and own finish words of *mapper*, an ``OpenAIChatDialect``, that no capture shows.

    Empty for any other plugin, because the fields that it maps are not declared.
    """
    dialect = getattr(mapper.map_delta, "__self__", None)
    if not isinstance(dialect, OpenAIChatDialect):
        return []
    responses = [normalized(mapper, capture) for capture in captures]
    shown = [one.get("response") or one.get("partial") or _NOTHING for one in responses]
    words = {one.get("raw_finish_reason") for one in shown}
    own = [word for word in dialect.finish_reasons if word not in OpenAIChatDialect.finish_reasons]
    return [
        *(name for name, shows in _FIELDS.items() if not any(map(shows, shown))),
        *(f"the finish word {word!r}" for word in own if word not in words),
    ]


_NOTHING: Final[dict[str, Any]] = {"message": {}, "usage": {}}
