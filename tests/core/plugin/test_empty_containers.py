"""Empty objects and arrays: those that the provider sent are kept, those that a hook emptied or made are not."""

from __future__ import annotations

from typing import Any

from crosswalk.plugin.state import empty_containers, prune


def test_what_a_hook_makes_does_not_inherit_the_identity_of_what_it_took() -> None:
    """A new list often gets the identity of one that has just been let go."""
    for _ in range(100):
        event: dict[str, Any] = {"a": []}
        kept = empty_containers(event)
        del event["a"]
        event["b"] = []
        prune(event, kept)
        assert event == {}
