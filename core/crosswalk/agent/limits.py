"""How much a run of an agent may use."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.types.usage import UsageInfo

__all__ = ["UsageLimits"]


def _need_number(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and (type(value) is not int or value < 1):
        name = attribute.name
        raise ConfigurationError(f"{name} must be a whole number of at least 1, or None", key=name)


@attrs.frozen(kw_only=True)
class UsageLimits:
    """How much a run may use; looked at after each answer, before its tools run and the model is asked again.

    Tokens that a provider does not report are not counted.

    Attributes:
        input_tokens: the tokens of all requests together with which it ends; ``None`` for no limit, here and below.
        output_tokens: the same of all answers.
        total_tokens: the same of both.
        tool_calls: how many calls it may run; an answer that asks for more gets none of its calls run.

    Raises:
        ConfigurationError: a limit that is no whole number from 1 on.
    """

    input_tokens: int | None = attrs.field(default=None, validator=_need_number)
    output_tokens: int | None = attrs.field(default=None, validator=_need_number)
    total_tokens: int | None = attrs.field(default=None, validator=_need_number)
    tool_calls: int | None = attrs.field(default=None, validator=_need_number)

    @property
    def counts_tokens(self) -> bool:
        """Whether one of the limits is of tokens."""
        return any(limit is not None for limit in (self.input_tokens, self.output_tokens, self.total_tokens))

    def reached(self, usage: UsageInfo, tool_calls: int) -> str | None:
        """The name of a limit that *usage* reaches, or *tool_calls* would exceed; ``None`` for none."""
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            limit = getattr(self, name)
            if limit is not None and getattr(usage, name) >= limit:
                return name
        return "tool_calls" if self.tool_calls is not None and tool_calls > self.tool_calls else None
