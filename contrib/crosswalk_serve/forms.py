"""Facts about the formats of clients."""

from __future__ import annotations

from collections.abc import Container

from starlette.requests import Request

from crosswalk.convert import WireForm

__all__ = ["form_at", "form_of", "media_type"]


def media_type(form: WireForm) -> str:
    """Return the content type of streams in *form*."""
    return "application/x-ndjson" if form.provider == "ollama" else "text/event-stream"


def form_of(request: Request) -> WireForm:
    """Return the form that the sender of *request* reads, for requests that do not reach an endpoint of any form."""
    return form_at(request.url.path, request.headers)


def form_at(path: str, headers: Container[str]) -> WireForm:
    """Return the form for a request for *path* with these *headers*, by name in lower case."""
    if path.startswith("/api/"):
        return WireForm.OLLAMA
    is_google = path.startswith("/v1beta/") or "x-goog-api-key" in headers
    if is_google or path.endswith(WireForm.GEMINI.paths):
        return WireForm.GEMINI
    is_anthropic = "anthropic-version" in headers or path.startswith("/v1/messages")
    return WireForm.ANTHROPIC if is_anthropic else WireForm.OPENAI_CHAT
