"""The hooks are their own documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from crosswalk import normalize
from crosswalk.errors import UnknownFinishReasonError
from crosswalk.plugin.hooks import ProviderHooks, hookimpl, path
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import MappingState, ProviderInfo
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.values import FinishReason
from wires import Echo, registry_of

SPECS: dict[str, Callable[..., Any]] = {
    name: value
    for name, value in vars(ProviderHooks).items()
    if callable(value) and hasattr(value, "crosswalk_spec")
}


@pytest.mark.parametrize("name", SPECS)
def test_the_first_result_counts(name: str) -> None:
    """Every hook gives one answer, that of the newest implementation that has one."""
    assert SPECS[name].crosswalk_spec["firstresult"] is True  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("response", ("response",)),
        ("message.content", ("message", "content")),
        ("choices[0].delta.content", ("choices", 0, "delta", "content")),
        ("a[0][12].b", ("a", 0, 12, "b")),
    ],
)
def test_a_path_names_the_keys_that_lead_there(text: str, keys: tuple[str | int, ...]) -> None:
    """Names are separated by points, places in an array are in brackets."""
    assert path(text) == keys
    assert ProviderInfo(title="T", text_paths=(text,)).text_paths == (keys,)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("title", 7, "title is str, not int"),
        ("names", [], "names is Names, not list"),
        ("names", None, "names is Names, not NoneType"),
        ("access", "http://127.0.0.1", "access is Access or None, not str"),
        ("way_back", 3, "way_back is WayBack, not int"),
        ("sentinel", "yes", "sentinel is bool, not str"),
        ("documentation", b"x", "documentation is str or None, not bytes"),
    ],
)
def test_a_description_of_another_type_breaks_its_plugin_alone(name: str, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ProviderInfo(**{"title": "T", name: value})


def test_what_a_plugin_leaves_out_has_an_answer() -> None:
    """With map_delta alone there is no usage, everything is residue, and canonical words are understood."""
    known = registry_of(echo=Echo())
    mapper = known.mapper("echo")
    state = mapper.new_state()
    assert isinstance(state, MappingState)
    assert state.provider == "echo"
    assert mapper.info == ProviderInfo(title="echo")
    assert mapper.map_usage({"usage": 1}, state) is None
    assert mapper.map_error(500, "") is None
    assert not mapper.recognizes({"text": "x"})
    assert mapper.build_request is None
    assert mapper.extensions is None
    assert normalize({"text": "x"}, "echo", registry=known).metadata.extensions == {"text": "x"}
    assert mapper.map_finish_reason("LENGTH", state) is FinishReason.LENGTH
    with pytest.raises(UnknownFinishReasonError, match="'ended'"):
        mapper.map_finish_reason("ended", state)
    assert not mapper.has_terminal


class Typed(ProviderHooks):
    """Is held to the hooks by a type checker, and forgets the mark of one."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        return [ResponseDelta(content_delta=event.pop("text"), raw_finish_reason="stop")]

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        return FinishReason.LENGTH


def test_the_typed_hooks_of_a_class_are_those_that_it_has() -> None:
    """They need no mark. Those of the protocol itself are not hooks of it."""
    known = registry_of(typed=Typed())
    mapper = known.mapper("typed")
    assert normalize({"text": "hi", "x": 1}, "typed", registry=known).finish_reason == "length"
    assert (mapper.extensions, mapper.build_request, mapper.map_error(500, "")) == (None, None, None)
    assert mapper.has_terminal
    for name in SPECS:
        hook = getattr(Untold(), name)
        assert hook(*[None] * len(inspect.signature(hook).parameters)) is None


class Untold(ProviderHooks):
    """Has no hook."""


@pytest.mark.parametrize(
    ("option", "text"), [("warn_on_impl", "use another hook"), ("warn_on_impl_args", "leave state out")]
)
def test_a_deprecated_hook_warns_who_implements_it(
    monkeypatch: pytest.MonkeyPatch, option: str, text: str
) -> None:
    """With the file of the plugin, which goes on working."""
    warning = DeprecationWarning(text)
    options = SPECS["map_finish_reason"].crosswalk_spec  # type: ignore[attr-defined]
    monkeypatch.setitem(options, option, {"state": warning} if option.endswith("args") else warning)
    with pytest.warns(DeprecationWarning, match=text) as caught:
        assert registry_of(typed=Typed()).mapper("typed").has_terminal
    assert [one.filename for one in caught] == [__file__]


class Shouts(Echo):
    """Overrides hooks without a mark, and does without one of them."""

    extensions = None

    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        return [ResponseDelta(content_delta=event.pop("text").upper())]

    def map_error(self, status: int, body: Any) -> None:
        raise AssertionError("no hook of the base, and not marked")


def test_what_overrides_a_hook_is_a_hook() -> None:
    """An author who forgets the mark would lose the hook without a word."""
    known = Registry(installed=())
    known.register(Shouts(), "shouts")
    assert normalize({"text": "hi", "more": 1}, "shouts", registry=known).text == "HI"
    mapper = known.mapper("shouts")
    assert (mapper.extensions, mapper.map_error(500, "")) == (None, None)
