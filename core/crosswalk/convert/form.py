"""The wire forms that clients speak. Answers are converted to them, and the gateway accepts requests in them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from crosswalk.convert.errors import ConversionError
from crosswalk.wire.options import FORMATS


class WireForm(StrEnum):
    """A form that clients understand, by the name that ``crosswalk convert --to`` takes."""

    provider: str
    """The provider id under which Crosswalk reads the form."""
    key: str
    """Its key in :data:`crosswalk.wire.options.FORMATS`."""
    label: str
    """Its name for people."""
    paths: tuple[str, ...]
    """The possible endings of the path of a server's endpoint that accepts the form."""

    def __new__(cls, word: str, provider: str, key: str) -> Self:
        """Return the form of this name, which is its value."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.provider = provider
        member.key = key
        member.label, member.paths = FORMATS[key]
        return member

    OPENAI_CHAT = "openai-chat", "openai", "chat"
    OPENAI_RESPONSES = "openai-responses", "openai_responses", "responses"
    ANTHROPIC = "anthropic", "anthropic", "messages"
    OLLAMA = "ollama", "ollama", "ollama"
    OLLAMA_GENERATE = "ollama-generate", "ollama", "generate"
    GEMINI = "gemini", "gemini", "gemini"
    OPENAI_COMPLETIONS = "openai-completions", "openai", "completions"

    @classmethod
    def of(cls, name: str) -> WireForm:
        """Return the form called *name*.

        Raises:
            ConversionError: there is no such form.
        """
        for form in cls:
            if form.value == name:
                return form
        raise ConversionError(f"no form {name!r:.40}; there are: {', '.join(cls)}")
