"""Servers that refuse what the real API refuses: a table of rules for each provider, each with its public source.

The rules are about the conversation in a request: who speaks, which calls have results, which signatures, ids and
reasoning come back. They say nothing of options, models or prices.
"""

from __future__ import annotations

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.plugin.registry import registry
from crosswalk.testing.strict.chat import DEEPSEEK, GROQ, MISTRAL, MOONSHOT, OPENAI
from crosswalk.testing.strict.cloud import BEDROCK, GEMINI
from crosswalk.testing.strict.messages import ANTHROPIC
from crosswalk.testing.strict.responses import RESPONSES
from crosswalk.testing.strict.rules import StrictRules

_RULES = {
    rules.provider: rules
    for rules in (ANTHROPIC, BEDROCK, DEEPSEEK, GEMINI, GROQ, MISTRAL, MOONSHOT, OPENAI, RESPONSES)
}
STRICT_PROVIDERS: tuple[str, ...] = tuple(_RULES)
"""The providers that have strict rules."""


def strict_rules(provider: str) -> StrictRules:
    """The rules of *provider*'s API.

    Raises:
        ConfigurationError: no rules are known for this provider.
    """
    if provider not in _RULES:
        names = ", ".join(STRICT_PROVIDERS)
        raise ConfigurationError(f"no strict rules for {provider[:60]!r}; there are some for {names}")
    own = registry.mapper(provider).info.framing
    return attrs.evolve(_RULES[provider], framing=own)
