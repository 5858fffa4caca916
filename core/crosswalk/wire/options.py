"""What requests say, independent of any format: the names of options and of details, the kind of each, its neutral value.

The spelling of each format is in its table, see :mod:`crosswalk.formats.tables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import attrs


class PlaceKind(StrEnum):
    """What becomes of a part of a request if a server has no place for it."""

    MEANING = "meaning"
    """The answer would be another one. Content is told in words, and anything else refuses the request."""
    HINT = "hint"
    """The answer is as good. The part is left out and named."""
    STATE = "state"
    """It names what a server keeps. The request is refused, because without it the request is another one."""
    LINK = "link"
    """It connects items, and is written anew."""


@attrs.frozen
class Place:
    """A canonical place: an option of a request, or a detail of a message or a tool.

    Attributes:
        name: its name. That of an option is its field of ``ChatRequest``, or its key in ``extra_options``. That of a detail
            begins with the object that has it: ``tool.strict``.
        kind: the kind of what stands there.
        neutral: the value that changes nothing, so nothing is lost without it.
        why: for a hint other than cache marks, tiers, labels and storage, the reason why it is one.
        also: other names under which a program may give the option.
        type: the type of a detail as JSON, for its reader.
    """

    name: str
    kind: PlaceKind
    neutral: Any = None
    why: str = attrs.field(default="", kw_only=True)
    also: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    type: type = attrs.field(default=object, kw_only=True)

    def is_neutral(self, value: Any) -> bool:
        """Return whether *value* changes nothing."""
        return value == self.neutral and type(value) is type(self.neutral)


_MEANING, _HINT, _STATE, _LINK = PlaceKind
_RUNS: Final = "it changes how the server runs, not what is asked"
_SHOWN: Final = "it changes what is shown of the reasoning, not the answer"

OPTIONS: Final[Mapping[str, Place]] = MappingProxyType(
    {
        place.name: place
        for place in (
            # Fields of a ChatRequest.
            *(Place(name, _MEANING) for name in ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed")),
            Place("parallel_tool_calls", _MEANING),
            Place("tool_choice", _MEANING),
            Place("reasoning_effort", _MEANING),
            Place("response_format", _MEANING),
            # Tools.
            Place("allowed_tools", _MEANING),
            Place("mcp_servers", _MEANING),
            # Sampling.
            Place("frequency_penalty", _MEANING, 0),
            Place("presence_penalty", _MEANING, 0),
            Place("repeat_penalty", _MEANING, 1, also=("repetition_penalty",)),
            Place("min_p", _MEANING),
            *(
                Place(name, _MEANING)
                for name in ("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta")
            ),
            Place("logit_bias", _MEANING, {}),
            # The answer.
            Place("n", _MEANING, 1),
            Place("logprobs", _MEANING, False),
            Place("top_logprobs", _MEANING, 0),
            Place("verbosity", _MEANING, "medium"),
            Place("modalities", _MEANING, ["text"]),
            Place("best_of", _MEANING, 1),
            Place("prediction", _HINT, why="it saves time, and changes no word of the answer"),
            Place("moderation", _MEANING),
            Place("encrypted_reasoning", _HINT, why=_SHOWN),
            Place("reasoning_summary", _HINT, why=_SHOWN),
            Place("thinking_budget", _HINT, why="the effort that it stands for is sent as well"),
            Place("think", _HINT, why="the effort that it stands for is sent as well"),
            Place("truncation", _MEANING, "disabled"),
            Place("compaction", _HINT, why="it shortens a conversation that grows too long for the model"),
            Place("background", _MEANING, False),
            # The user, records and cost.
            *(Place(name, _HINT) for name in ("user", "safety_identifier")),
            Place("metadata", _HINT, {}),
            Place("store", _HINT, False),
            *(Place(name, _HINT) for name in ("prompt_cache_key", "prompt_cache_retention", "cache_control")),
            *(Place(name, _HINT) for name in ("prompt_cache_mode", "prompt_cache_ttl")),
            Place("service_tier", _HINT, "auto"),
            Place("speed", _HINT, "standard"),
            Place("safety_settings", _HINT, [], why="it sets what the server's own filter lets pass"),
            Place("include_obfuscation", _HINT, False, why="it pads the events of a stream"),
            # Ollama's runner.
            Place("keep_alive", _HINT, why=_RUNS),
            *(
                Place(name, _HINT, why=_RUNS)
                for name in (
                    *("num_ctx", "num_batch", "num_gpu", "num_keep", "num_thread", "main_gpu", "numa"),
                    *("low_vram", "f16_kv", "use_mmap", "use_mlock"),
                )
            ),
            *(Place(name, _MEANING) for name in ("penalize_newline", "tfs_z", "truncate", "shift")),
        )
    }
)  # fmt: skip
"""The options of a request, by name. If two have one spelling in a format, the first is read, and the first that is set is
written."""

DETAILS: Final[Mapping[str, Place]] = MappingProxyType(
    {
        place.name: place
        for place in (
            Place("part.text", _MEANING),
            Place("part.image", _MEANING),
            Place("part.audio", _MEANING),
            Place("part.file", _MEANING),
            Place("part.file_id", _STATE),
            Place("part.detail", _HINT, "auto", why="it sets how closely a picture is looked at"),
            Place("part.name", _HINT, why="the content is the same without the name of its file"),
            Place("part.context", _MEANING),
            Place("part.citations", _MEANING, False),
            Place("part.search_result", _MEANING),
            *(Place(f"cache.{name}", _HINT) for name in ("mark", "ttl", "tools")),
            Place("message.name", _MEANING),
            Place("message.tool_change", _MEANING),
            Place("call", _MEANING),
            Place("result", _MEANING),
            Place("result.is_error", _MEANING, False),
            Place("reasoning", _HINT, why="reasoning of a model is read by its own server alone"),
            Place("refusal", _MEANING),
            Place("citation", _HINT, why="the text is the same without its sources"),
            Place("tool.name", _MEANING, type=str),
            Place("tool.description", _MEANING, type=str),
            Place("tool.parameters", _MEANING, type=dict),
            Place("tool.strict", _HINT, False, why="the model gets the schema all the same", type=bool),
            Place("tool.defer_loading", _HINT, False, why="a tool that is loaded at once can be called", type=bool),
            Place("tool.output_schema", _HINT, why="it describes a result that the model gets to see", type=dict),
            Place("tool.input_format", _MEANING, type=dict),
            Place("format.schema", _MEANING, type=dict),
            Place("format.name", _HINT, "answer", why="it is a label of the schema", type=str),
            Place("format.description", _HINT, why="the schema says what the answer holds", type=str),
            Place("format.strict", _HINT, False, why="the model gets the schema all the same", type=bool),
            Place("web_search", _MEANING),
            Place("hosted.allowed_domains", _MEANING, type=list),
            Place("hosted.blocked_domains", _MEANING, type=list),
            Place("hosted.max_uses", _MEANING, type=int),
            Place("hosted.user_location", _MEANING, type=dict),
            Place("hosted.search_context_size", _MEANING, "medium", type=str),
            Place("web_fetch", _MEANING),
            Place("code_execution", _MEANING),
            Place("client_tool", _MEANING),
            Place("mcp.name", _MEANING, type=str),
            Place("mcp.url", _MEANING, type=str),
            Place("mcp.authorization", _MEANING, type=str),
            Place("mcp.headers", _MEANING, type=dict),
            Place("mcp.allowed_tools", _MEANING),
            Place("mcp.approval", _MEANING, "never"),
        )
    }
)  # fmt: skip
"""The details of messages, tools and formats that more than one format has, by name."""

PLACES: Final[Mapping[str, Place]] = MappingProxyType({**OPTIONS, **DETAILS})
"""All canonical places."""


def option_named(name: str) -> Place | None:
    """Return the option that a program calls *name*, or ``None`` if there is none."""
    return OPTIONS.get(name) or next((place for place in OPTIONS.values() if name in place.also), None)
