"""Whatever the code of a plugin does, a program goes on, and the error names the plugin: framing, decoders, values."""

from __future__ import annotations

import warnings
from importlib.metadata import Distribution, EntryPoint
from typing import Any

import pytest

from crosswalk import detect, normalize
from crosswalk.errors import DetectionError, PluginError
from crosswalk.plugin.registry import ENTRY_POINT_GROUP, Registry
from crosswalk.plugins import (
    API,
    API_MINOR,
    NDJSONDecoder,
    ProviderHooks,
    ProviderInfo,
    PushDecoder,
    Recognition,
    ResponseDelta,
    hookimpl,
    take_string,
)
from crosswalk.testing import Capture, check_capture
from crosswalk.types.json import is_finite
from wires import ndjson, read, registry_of


class Plain(ProviderHooks):
    """Reads texts. Its framing is what a test gives it."""

    def __init__(self, framing: Any = None) -> None:
        self.framing = framing

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Plain", framing=self.framing)

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        return [ResponseDelta(content_delta=take_string(event, "text"))]


class Odd(PushDecoder):
    """Does with its bytes what a test says, at once or in the end."""

    def __init__(self, act: Any, *, late: bool) -> None:
        super().__init__()
        self.act = act
        self.late = late

    def read(self, chunk: bytes, frames: list[Any]) -> None:
        if not self.late:
            frames.append(self.act())

    def finish(self, frames: list[Any]) -> None:
        if self.late:
            frames.append(self.act())


def leave() -> None:
    raise SystemExit(3)


ODD = {
    "exit": (leave, "its framing failed with SystemExit"),
    "no frame": (lambda: "text", "its decoder gave str, not bytes and a name"),
    "three values": (lambda: (b"", None, 1), "its decoder gave tuple, not bytes and a name"),
    "text for bytes": (lambda: ("{}", None), "its decoder gave tuple, not bytes and a name"),
    "number for a name": (lambda: (b"{}", 7), "its decoder gave tuple, not bytes and a name"),
}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_a_decoder_that_does_anything_is_a_plugin_that_failed(name: str, late: bool) -> None:
    act, message = ODD[name]
    with pytest.raises(PluginError, match=f"'test': {message}"):
        read(Plain(lambda start, limits, kind: Odd(act, late=late)), ndjson({"text": "x"}))


class OldDecoder(PushDecoder):
    """As nobody has described it."""

    def read(self, chunk: bytes) -> None:  # type: ignore[override]
        del chunk


def test_a_decoder_of_other_arguments_is_told_which() -> None:
    told = r"failed with TypeError \(OldDecoder.read\(\) takes 2 positional arguments but 3 were given\) in decode"
    with pytest.raises(PluginError, match=told):
        read(Plain(lambda start, limits, kind: OldDecoder()), ndjson({"text": "x"}))


class Leaver(Plain):
    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        leave()
        return []


def test_a_hook_that_ends_the_program_is_told_with_its_line() -> None:
    with pytest.raises(PluginError, match=r"failed with SystemExit in leave, line \d+ of test_fence.py"):
        read(Leaver(), ndjson({"text": "x"}))


class Unsure(Plain):
    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition(event["sure"])


def test_a_recognizes_that_failed_is_named_if_nobody_recognizes_the_answer() -> None:
    known = registry_of(unsure=Unsure(), plain=Plain())
    with pytest.raises(DetectionError) as caught:
        detect([{"text": "x"}, {"text": "y"}], known)
    told = "name one of: plain, unsure; recognizes of 'unsure' failed with KeyError in recognizes, line "
    assert told in str(caught.value)
    assert detect([{"text": "x"}, {"sure": 2}], known) == "unsure"


class NoList(NDJSONDecoder):
    def decode(self, chunk: bytes) -> Any:
        return None


def test_a_decoder_gives_a_list() -> None:
    with pytest.raises(PluginError, match="its decoder gave NoneType"):
        read(Plain(lambda start, limits, kind: NoList(limits)), ndjson({"text": "x"}))


def test_a_framing_that_ends_the_program_does_not() -> None:
    with pytest.raises(PluginError, match="its framing failed with SystemExit"):
        read(Plain(lambda start, limits, kind: leave()), ndjson({"text": "x"}))


def test_a_cancellation_is_nobodys_failure() -> None:
    def cancel(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(Plain(cancel), ndjson({"text": "x"}))


@pytest.mark.parametrize(
    "framing",
    [
        lambda start, limits, kind: NDJSONDecoder(limits),
        lambda *arguments: NDJSONDecoder(arguments[1]),
        lambda start, limits, kind, more=None: NDJSONDecoder(limits),
        type("Callable", (), {"__call__": lambda self, start, limits, kind: NDJSONDecoder(limits)})(),
    ],
    ids=["three", "any", "more", "object"],
)
def test_a_framing_gets_the_arguments_that_it_takes(framing: Any) -> None:
    assert read(Plain(framing), ndjson({"text": "x"}))[1].text == "x"


def test_a_framing_of_two_arguments_works_and_is_told_to_change() -> None:
    """As API 1.0 described it."""
    known = registry_of(plain=Plain(lambda start, limits: NDJSONDecoder(limits)))
    with pytest.warns(DeprecationWarning, match="'plain': since API 1.1 framing gets three arguments"):
        mapper = known.mapper("plain")
    assert normalize(ndjson({"text": "x"}), "plain", registry=known).text == "x"
    assert mapper.own_decoder(b"{", mapper.new_decoder().limits, "") is not None
    assert (
        registry_of(plain=Plain()).mapper("plain").own_decoder(b"{", mapper.new_decoder().limits, "") is None
    )


SIGNATURES = {
    (1, 1): {
        "map_delta": ("event", "state"),
        "map_usage": ("event", "state"),
        "map_finish_reason": ("reason", "state"),
        "extensions": ("event", "state"),
        "map_error": ("status", "body"),
        "recognizes": ("event",),
        "build_request": ("request",),
        "provider_info": (),
    }
}
SIGNATURES[1, 4] = SIGNATURES[1, 3] = SIGNATURES[1, 2] = SIGNATURES[1, 1]
"""What hooks get, by the version of the API that said so. Another argument raises the minor, and is a new row here."""


def test_another_argument_raises_the_version_of_the_api() -> None:
    from crosswalk.plugin.registry import HOOKS

    assert SIGNATURES[API, API_MINOR] == HOOKS


# ------------------------------------------------------------------------- values that hold themselves


def circle() -> dict[str, Any]:
    value: dict[str, Any] = {"list": []}
    value["list"].append(value)
    return value


class LeavesCircle(Plain):
    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        event["left"] = circle()
        return super().map_delta(event, state)


class KeepsTwo(Plain):
    """The second extensions hold the first, and the first the second."""

    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        earlier = state.own(dict)
        kept = {"one": {}} if not earlier else {"two": earlier["kept"]}
        if earlier:
            earlier["kept"]["one"]["self"] = kept
        earlier["kept"] = kept
        return kept


class KeepsCircle(Plain):
    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        return circle()


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (LeavesCircle(), "left in the event a value that holds itself"),
        (KeepsCircle(), "left in the extensions a value that holds itself"),
        (KeepsTwo(), "left in the extensions a value that holds itself"),
    ],
    ids=["event", "extensions", "two"],
)
def test_a_value_that_holds_itself_is_the_plugins_fault(plugin: Any, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        read(plugin, ndjson({"text": "x", "end": 1}, {"text": "y", "end": 2}))


def test_a_single_value_that_holds_itself_is_the_plugins_fault() -> None:
    with pytest.raises(PluginError, match="left in the extensions what is not JSON"):
        read(KeepsCircle(), ndjson({"text": "x"}))


@pytest.mark.untraced
def test_a_deep_value_has_an_end() -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep, {"x": deep}]
    assert is_finite(deep)
    assert not is_finite(circle())


# ------------------------------------------------------------------------------------- the registry


class Dist(Distribution):
    """A distribution with its own name."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def read_text(self, filename: str) -> str:
        return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: 1\n"

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


def point(name: str, module: str, distribution: str) -> EntryPoint:
    return EntryPoint(name, module, ENTRY_POINT_GROUP)._for(Dist(distribution))  # type: ignore[attr-defined, no-any-return]


def test_two_packages_of_one_name_are_told_at_use() -> None:
    known = Registry(
        installed=[point("dup", "wires:Echo()", "two-b"), point("dup", "wires:Echo", "one-a")], environ={}
    )
    with (
        pytest.warns(RuntimeWarning, match="'dup' is in several distributions, one-a, two-b"),
        pytest.raises(PluginError),
    ):
        known.mapper("dup")


def test_one_override_of_a_shipped_provider_is_not_told() -> None:
    shipped, theirs = (
        point("vllm", "crosswalk_vllm:plugin", "crosswalk-llm"),
        point("vllm", "nowhere", "over-vllm"),
    )
    known = Registry(installed=[shipped, theirs], environ={})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mapper = known.mapper("vllm")
    assert mapper.ignored == ("over-vllm",)
    assert ["is ignored" in str(one.message) for one in caught] == [True]


# ------------------------------------------------------------------------------------------ the kit


class Takes(Plain):
    """Takes from the event when it is asked whose it is."""

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        is_text = isinstance(event, dict) and event.pop("text", None)
        return Recognition.CERTAIN if is_text else Recognition.NO


class Exits(Plain):
    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        raise SystemExit


def problems(plugin: Any, **options: Any) -> list[str]:
    from pathlib import Path

    capture = Capture("case", Path("case"), ndjson({"text": "x"}, {"text": "y"}), stream=True)
    found = check_capture(registry_of(toy=plugin).mapper("toy"), capture, **options)
    return [str(problem) for problem in found]


@pytest.mark.parametrize("message", [message for _, message in ODD.values()], ids=ODD)
def test_the_kit_refuses_what_a_broken_framing_reads(message: str) -> None:
    act = next(act for act, one in ODD.values() if one == message)
    found = problems(Plain(lambda start, limits, kind: Odd(act, late=False)))
    place = f" in leave, line {leave.__code__.co_firstlineno + 1} of test_fence.py" if act is leave else ""
    assert found == [f"P4 case, as it is: refused: PluginError: provider 'toy': {message}{place}"]
    found = problems(Plain(lambda start, limits, kind: 7))
    assert found == [
        "P4 case, as it is: refused: PluginError: provider 'toy': its framing gave int, not a decoder"
    ]


def test_the_kit_names_a_recognizes_that_changes_its_event() -> None:
    checks = ["recognizes its own"]
    assert problems(Takes(), checks=checks) == ["P4 case, detection: recognizes changes the event"]
    assert problems(Exits(), checks=checks) == [
        "P4 case, detection: fails with SystemExit on what others have sent"
    ]


def test_a_recognizes_that_waits_for_the_user_is_left_to_them() -> None:
    class Interrupted(Plain):
        @hookimpl
        def recognizes(self, event: Any) -> Recognition:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        problems(Interrupted(), checks=["recognizes its own"])


def test_a_check_that_cannot_go_on_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswalk.testing import CHECKS

    monkeypatch.setitem(CHECKS, "deterministic", lambda case: 1 / 0)
    assert problems(Plain(), checks=["deterministic"]) == [
        "P4 case, deterministic: the check cannot go on: ZeroDivisionError"
    ]
