"""What tests of the engine ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from crosswalk.mapping import Reader
from crosswalk.mapping.learnt.template import Template
from crosswalk.wire import load_event


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The frames that were parsed, not read by a template."""
    frames: list[bytes] = []

    def load(data: bytes, *given: Any, **more: Any) -> Any:
        frames.append(data)
        return load_event(data, *given, **more)

    monkeypatch.setattr(Reader, "_load", lambda self, data: load(data))
    yield frames


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[Template]:
    """The templates by which an event was read alone, not many at once."""
    found: list[Template] = []
    reader = Template.reader

    def counted(template: Template, *given: Any, **known: Any) -> Any:
        found.append(template)
        return reader(template, *given, **known)

    monkeypatch.setattr(Template, "reader", counted)
    return found
