"""The wire forms that clients speak. Answers are converted to them, and the gateway accepts requests in them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from crosswalk.convert.errors import ConversionError

__all__ = ["WireForm"]


class WireForm(StrEnum):
    """A form that clients understand, by the name that ``crosswalk convert --to`` takes."""

    provider: str
    """The provider id under which Crosswalk reads the form."""
    label: str
    """Its name for people."""
    paths: tuple[str, ...]
    """The possible endings of the path of a server's endpoint that accepts the form."""

    def __new__(cls, word: str, provider: str, label: str, *paths: str) -> Self:
        """Return the form of this name, which is its value."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.provider = provider
        member.label = label
        member.paths = paths
        return member

    OPENAI_CHAT = "openai-chat", "openai", "Chat Completions", "/chat/completions"
    OPENAI_RESPONSES = "openai-responses", "openai_responses", "Responses", "/responses"
    ANTHROPIC = "anthropic", "anthropic", "Messages", "/messages"
    OLLAMA = "ollama", "ollama", "Ollama's chat", "/api/chat"
    OLLAMA_GENERATE = "ollama-generate", "ollama", "Ollama's generate", "/api/generate"
    GEMINI = "gemini", "gemini", "Gemini", ":generateContent", ":streamGenerateContent"
    OPENAI_COMPLETIONS = "openai-completions", "openai", "Completions", "/v1/completions"

    @classmethod
    def of(cls, name: str) -> WireForm:
        """Return the form called *name*.

        Raises:
            ConversionError: there is no such form.
        """
        for form in cls:
            if form.value == name:
                return form
        raise ConversionError(f"no form {name[:40]!r}; there are: {', '.join(cls)}")
