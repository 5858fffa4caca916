"""The options that an agent run works with: usage limits, the output type and everything else that is fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from crosswalk.agent.chat import ChatConfig
from crosswalk.agent.runner import Approve, ToolRunner
from crosswalk.agent.trimming import Trimming, estimated_tokens
from crosswalk.errors import ConfigurationError
from crosswalk.keywords import checks_keywords
from crosswalk.request import ChatRequest, Turn
from crosswalk.service.json_answer import with_schema
from crosswalk.service.turns import message_of
from crosswalk.structured import Prose, Schema, StructuredParser
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo

if TYPE_CHECKING:
    from crosswalk.agent.otel import AgentTelemetry
    from crosswalk.service import LLMService


def _check_limit(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and (type(value) is not int or value < 1):
        name = attribute.name
        raise ConfigurationError(f"{name} must be a whole number of at least 1, or None", key=name)


@checks_keywords()
@attrs.frozen(kw_only=True)
class UsageLimits:
    """Limits of an agent run, checked after each answer, before its tools run and the model is asked again.

    If a provider does not report tokens, they are estimated at four characters a token.

    Attributes:
        input_tokens: the run ends when all requests together reach this many tokens, or ``None`` for no limit, here and
            below.
        output_tokens: the same for all answers.
        total_tokens: the same for both.
        tool_calls: how many calls the run may execute. An answer that would exceed it gets none of its calls run.

    Raises:
        ConfigurationError: a limit is not a whole number of at least 1.
    """

    input_tokens: int | None = attrs.field(default=None, validator=_check_limit)
    output_tokens: int | None = attrs.field(default=None, validator=_check_limit)
    total_tokens: int | None = attrs.field(default=None, validator=_check_limit)
    tool_calls: int | None = attrs.field(default=None, validator=_check_limit)

    @property
    def counts_tokens(self) -> bool:
        """Whether there is a limit on tokens."""
        return any(limit is not None for limit in (self.input_tokens, self.output_tokens, self.total_tokens))

    def reached(self, usage: UsageInfo, tool_calls: int) -> str | None:
        """Return the name of a limit that *usage* reaches or *tool_calls* exceeds, or ``None``."""
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            limit = getattr(self, name)
            if limit is not None and getattr(usage, name) >= limit:
                return name
        return "tool_calls" if self.tool_calls is not None and tool_calls > self.tool_calls else None


class RunUsage:
    """The tokens of a run, compared with its limits.

    Attributes:
        is_estimated: whether the tokens of the last answer count for a limit although the provider did not report them.
    """

    def __init__(self, limits: UsageLimits) -> None:
        self._limits = limits
        self._usage = UsageInfo.EMPTY
        self.is_estimated = False

    def add(self, request: ChatRequest, answer: ChatResponse) -> None:
        """Add the tokens of *answer* to *request*, estimated if the provider did not report them."""
        is_reported = bool(answer.usage.total_tokens)
        self._usage += (
            answer.usage
            if is_reported
            else UsageInfo(estimated_tokens(request.messages), estimated_tokens([answer]))
        )
        self.is_estimated = not is_reported and self._limits.counts_tokens

    def limit_reached(self, tool_calls: int) -> str | None:
        """Return the limit that the tokens have reached, or that *tool_calls* calls would exceed."""
        return self._limits.reached(self._usage, tool_calls)


@attrs.frozen
class Output:
    """The type of an agent's answer.

    Attributes:
        parser: reads the value from an answer.
        instructions: describe the required form to the model.
    """

    parser: StructuredParser[Any]
    instructions: str

    @classmethod
    def of(cls, kind: Any, prose: Any = Prose.ALLOW) -> Output:
        """Return the output type for *kind*: a type, a schema, or a parser of one schema.

        Raises:
            SchemaDefinitionError: *kind* cannot be the type of an answer.
            ConfigurationError: *kind* is a parser of several versions.
        """
        parser = kind if isinstance(kind, StructuredParser) else StructuredParser(kind, prose=prose)
        if not isinstance(parser.schema, Schema):
            raise ConfigurationError("output_type needs one schema, not several versions", key="output_type")
        instructions = parser.schema.instructions()
        if parser.schema.server_schema()[1]:
            parser = parser.with_null_as_default()
        return cls(parser, instructions)

    def read(self, answer: ChatResponse) -> tuple[Any, str]:
        """Return the value in *answer* and ``""``, or ``None`` and what is wrong."""
        result = self.parser.parse(answer)
        return (result.value, "") if result.ok else (None, "; ".join(result.errors) or result.reason.value)


@attrs.frozen(kw_only=True)
class AgentPlan:
    """The options of an agent, described in :class:`~crosswalk.agent.Agent`."""

    service: LLMService
    runner: ToolRunner
    config: ChatConfig
    max_turns: int
    instructions: str | None
    output: Output | None
    limits: UsageLimits
    approve: Approve | None
    trim: Trimming | None
    name: str | None
    telemetry: AgentTelemetry | None

    def request(self, turns: Sequence[Turn]) -> ChatRequest:
        """Return the request that sends *turns*, with the instructions and the runner's tools of this moment."""
        config = attrs.evolve(self.config, tools=self.runner.tools.values())
        request = config.request(_with_instructions(turns, self.instructions))
        if self.output is None or request.tools:  # many servers accept a schema or tools, not both
            return request
        return with_schema(request, self.output.parser, instruct=False)


def _with_instructions(turns: Sequence[Turn], instructions: str | None) -> Sequence[Turn]:
    """Return *turns* with *instructions* in one leading system message, because many chat templates read only the first."""
    if instructions is None or not turns:
        return turns
    first = message_of(turns[0])
    if first.role is Role.SYSTEM and isinstance(first.content, str):
        return (ChatMessage.system(f"{instructions}\n\n{first.content}"), *turns[1:])
    return (ChatMessage.system(instructions), *turns)
