"""Servers that refuse what the real API refuses: a table of rules for each provider, each with its public source.

The rules are about the conversation in a request: who speaks, which calls have results, which signatures, ids and
reasoning come back. They say nothing of options, models or prices.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.plugin.registry import registry

if TYPE_CHECKING:
    from crosswalk.testing.strict.rules import StrictRules

STRICT_PROVIDERS: Final = (
    *(
        "anthropic",
        "bedrock",
        "deepseek",
        "gemini",
        "groq",
        "mistral",
        "moonshot",
        "openai",
        "openai_responses",
    ),
)
"""The providers that have strict rules."""


@cache
def _all_rules() -> dict[str, StrictRules]:
    from crosswalk.testing.strict.chat import DEEPSEEK, GROQ, MISTRAL, MOONSHOT, OPENAI
    from crosswalk.testing.strict.cloud import BEDROCK, GEMINI
    from crosswalk.testing.strict.messages import ANTHROPIC
    from crosswalk.testing.strict.responses import RESPONSES

    all_rules = (ANTHROPIC, BEDROCK, DEEPSEEK, GEMINI, GROQ, MISTRAL, MOONSHOT, OPENAI, RESPONSES)
    return {rules.provider: rules for rules in all_rules}


def strict_rules(provider: str) -> StrictRules:
    """The rules of *provider*'s API.

    Raises:
        ConfigurationError: no rules are known for this provider.
    """
    if provider not in STRICT_PROVIDERS:
        names = ", ".join(STRICT_PROVIDERS)
        raise ConfigurationError(f"no strict rules for {provider[:60]!r}; there are some for {names}")
    framing = registry.mapper(provider).info.framing
    return attrs.evolve(_all_rules()[provider], framing=framing)
