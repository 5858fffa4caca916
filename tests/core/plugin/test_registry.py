"""Providers are found by name, resolved late, and cannot hurt each other."""

from __future__ import annotations

import asyncio
import builtins
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from crosswalk.errors import CrosswalkError, PluginError, UnknownProviderError
from crosswalk.plugin.hooks import hookimpl
from crosswalk.plugin.registry import ENTRY_POINT_GROUP, ProviderEntry, Registry
from crosswalk.plugins import ProviderInfo
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.values import FinishReason
from wires import Echo, read, registry_of

GOOD = """
from crosswalk import ResponseDelta
from crosswalk.plugins import hookimpl

@hookimpl
def map_delta(event, state):
    return [ResponseDelta(content_delta=NAME)]
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs distributions, as pip leaves them, each with one provider with the given code."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def install(
        name: str, code: str = "", *, target: str = "", distribution: str = "", requires: str = ""
    ) -> None:
        module = f"provider_{name}"
        (tmp_path / f"{module}.py").write_text((code or GOOD).replace("NAME", repr(name)))
        distribution = distribution or f"crosswalk-{name}"
        info = tmp_path / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n{requires}"
        )
        (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = {target or module}\n")

    yield install
    for name in set(sys.modules) - before:
        if name.startswith("provider_"):
            del sys.modules[name]


def test_providers_are_listed_without_importing_them(install: Install) -> None:
    """A listing shows name, distribution, version and target. Not even a broken plugin shows there."""
    install("alpha")
    install("broken", "raise RuntimeError")
    known = Registry(environ={})
    entries = {entry.name: entry for entry in known.providers()}
    assert entries["alpha"] == ProviderEntry("alpha", "crosswalk-alpha", "1.2", "provider_alpha")
    assert {"ollama", "vllm", "alpha", "broken"} <= set(known.names())
    assert list(entries) == sorted(entries)
    assert not {"provider_alpha", "provider_broken"} & set(sys.modules)


def test_only_the_provider_asked_for_is_imported(install: Install) -> None:
    """Resolving one provider leaves the code of the others alone, and happens once."""
    install("alpha")
    install("beta")
    known = Registry(environ={})
    mapper = known.mapper("alpha")
    assert mapper.provider == "alpha"
    assert known.mapper("alpha") is mapper
    assert "provider_alpha" in sys.modules
    assert "provider_beta" not in sys.modules


def test_an_unknown_name_lists_the_known() -> None:
    """The error names what was asked for and what could have been. Blocked ones are not offered."""
    known = registry_of(echo=Echo(), other=Echo())
    known.block("other")
    with pytest.raises(UnknownProviderError, match="unknown provider 'olama'; known: echo") as caught:
        known.mapper("olama")
    assert (caught.value.plugin, caught.value.known) == ("olama", ("echo",))
    assert isinstance(caught.value, LookupError)
    with pytest.raises(UnknownProviderError, match="known: none"):
        registry_of().mapper("echo")


@pytest.mark.parametrize("names", ["alpha", " alpha , nobody", ",alpha,"])
def test_what_the_environment_blocks_is_never_imported(install: Install, names: str) -> None:
    """CROSSWALK_DISABLED_PLUGINS holds names separated by commas. They are listed as blocked, not as names."""
    install("alpha")
    known = Registry(environ={"CROSSWALK_DISABLED_PLUGINS": names})
    assert [entry.blocked for entry in known.providers() if entry.name == "alpha"] == [True]
    assert "alpha" not in known.names()
    with pytest.raises(UnknownProviderError, match="'alpha' is blocked"):
        known.mapper("alpha")
    assert "provider_alpha" not in sys.modules


def test_blocking_is_read_from_the_process_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an environment a registry looks at the process's."""
    monkeypatch.setenv("CROSSWALK_DISABLED_PLUGINS", "vllm")
    assert "vllm" not in Registry().names()


OVERRIDE = (
    "from crosswalk.plugins import hookimpl\n@hookimpl\ndef map_usage(event, state):\n    return None\n"
)


@pytest.mark.parametrize("blocked", ["vllm@crosswalk-vllm-fork", "vllm@Crosswalk_vLLM.Fork"])
def test_one_distribution_of_several_can_be_blocked(install: Install, blocked: str) -> None:
    """Registrations of others under that name stay, the shipped provider too."""
    install("vllm", OVERRIDE, distribution="crosswalk-vllm-fork")
    by_environment = Registry(environ={"CROSSWALK_DISABLED_PLUGINS": f"other, {blocked}"})
    late = Registry(environ={})
    assert late.is_changed("vllm")
    late.block(blocked)
    for known in (by_environment, late):
        (entry,) = (entry for entry in known.providers() if entry.name == "vllm")
        assert (entry.distribution, entry.overrides, entry.blocked) == ("crosswalk-llm", (), False)
        assert known.mapper("vllm").info.title == "vLLM"
        assert not known.is_changed("vllm")
    late.unblock(blocked)
    assert late.is_changed("vllm")


def test_a_distribution_of_entry_points_that_a_program_gives_can_be_blocked() -> None:
    points = [
        EntryPoint("acme", "provider_acme", ENTRY_POINT_GROUP)._for(Dist(owner))  # type: ignore[attr-defined]
        for owner in ("one", "two")
    ]
    known = Registry(installed=points, environ={"CROSSWALK_DISABLED_PLUGINS": "acme@two"})
    (entry,) = known.providers()
    assert (entry.distribution, entry.overrides) == ("one", ())


def test_the_shipped_provider_can_be_blocked_alone(install: Install) -> None:
    install("vllm", distribution="crosswalk-vllm-fork")
    known = Registry(environ={"CROSSWALK_DISABLED_PLUGINS": "vllm@crosswalk-llm"})
    assert (known.is_shipped("vllm"), known.mapper("vllm").info.title) == (False, "vllm")
    with pytest.raises(UnknownProviderError, match="'vllm' is not shipped"):
        known.shipped("vllm")


@pytest.mark.parametrize(
    "code",
    ["raise RuntimeError('odd')", "from crosswalk.plugins import hookimpl\n@hookimpl\ndef map_usage(x): ..."],
)
def test_a_broken_override_is_ignored_with_a_warning(install: Install, code: str) -> None:
    """The warning names the distribution. The shipped provider reads on, and a working override still counts."""
    install("vllm", code, distribution="crosswalk-vllm-fork")
    known = Registry(environ={})
    with pytest.warns(
        RuntimeWarning, match="'crosswalk-vllm-fork'.*; it is ignored, and the shipped provider"
    ):
        assert known.mapper("vllm").info.title == "vLLM"
    assert known.shipped("vllm").info.title == "vLLM"


def test_a_block_can_come_late_and_be_taken_back(install: Install) -> None:
    """A provider that was resolved before can be blocked. Afterwards it resolves again."""
    install("alpha")
    known = Registry(environ={})
    first = known.mapper("alpha")
    known.block("alpha")
    with pytest.raises(UnknownProviderError):
        known.mapper("alpha")
    known.unblock("alpha")
    known.unblock("nobody")
    assert known.mapper("alpha") is not first


def test_a_plugin_object_can_be_registered_and_taken_back() -> None:
    """A provider may live in the program itself. Without its last plugin it is gone."""
    known = Registry(installed=[], environ={})
    plugin = Echo()
    known.register(plugin, "echo")
    assert known.providers() == [ProviderEntry("echo", None, None, "Echo")]
    assert known.mapper("echo").is_unmodified
    known.unregister(plugin, "echo")
    assert known.providers() == []
    with pytest.raises(UnknownProviderError):
        known.mapper("echo")


@pytest.mark.parametrize("name", [Echo(), None])
def test_a_provider_has_a_name(name: Any) -> None:
    """Swapped arguments are reported at once."""
    with pytest.raises(TypeError, match="the name is a string"):
        Registry(installed=[], environ={}).register("echo", name)


@pytest.mark.parametrize("name", ["echo", "nobody"])
def test_only_what_was_registered_can_be_taken_back(name: str) -> None:
    """Taking back a stranger's plugin is an error that names the provider."""
    with pytest.raises(UnknownProviderError, match=f"'{name}': not registered here"):
        registry_of(echo=Echo()).unregister(Echo(), name)


def test_a_module_is_listed_by_its_name() -> None:
    """For a registered module the listing shows the module's name."""
    import wires

    assert registry_of(echo=wires).providers()[0].target == "wires"


def test_registering_one_object_twice_is_registering_it_once() -> None:
    """Two calls, or two entry points, that name one object do not clash."""
    plugin = Echo()
    known = registry_of(echo=plugin)
    known.register(plugin, "echo")
    assert known.mapper("echo").is_unmodified


def test_plugins_may_have_the_same_name_in_their_own_code() -> None:
    """Two classes of one name, registered as they are, are two plugins."""

    def make(reason: FinishReason) -> type:
        class Plugin:
            @staticmethod
            @hookimpl
            def map_finish_reason() -> FinishReason:
                return reason

        return Plugin

    known = registry_of(echo=Echo())
    known.register(make(FinishReason.STOP), "echo")
    known.register(make(FinishReason.LENGTH), "echo")
    mapper = known.mapper("echo")
    assert mapper.map_finish_reason("x", mapper.new_state()) is FinishReason.LENGTH


class Finish:
    """Overrides a single hook, and leaves out the argument that it does not need."""

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        """Know one word more."""
        return FinishReason.LENGTH if reason == "full" else None


def test_a_later_registration_overrides_single_hooks(install: Install) -> None:
    """Its hooks come first. Events that it does not answer are answered as before."""
    install("alpha")
    known = Registry(environ={})
    assert known.mapper("alpha").has_terminal is False
    known.register(Finish(), "alpha")
    mapper = known.mapper("alpha")
    state = mapper.new_state()
    assert mapper.has_terminal
    assert not mapper.is_unmodified
    assert mapper.map_finish_reason("full", state) is FinishReason.LENGTH
    assert mapper.map_finish_reason("done", state) is None
    assert [delta.content_delta for delta in mapper.map_delta({}, state) or ()] == ["alpha"]
    assert [entry.target for entry in known.providers() if entry.name == "alpha"] == ["Finish"]


def test_the_last_override_comes_first() -> None:
    """With several plugins under one name the one registered last is asked first."""
    known = registry_of(echo=Echo())
    known.register(Finish(), "echo")

    class More(Finish):
        @hookimpl
        def map_finish_reason(self, reason: str) -> FinishReason | None:
            return FinishReason.STOP if reason in {"full", "done"} else None

    known.register(More(), "echo")
    mapper = known.mapper("echo")
    state = mapper.new_state()
    assert mapper.map_finish_reason("full", state) is FinishReason.STOP


def test_an_override_gives_what_the_installed_one_lacks(install: Install) -> None:
    """Together they need one map_delta, in any of them."""
    install("alpha", "")
    install("empty", "x = 1")
    known = Registry(environ={})
    known.register(Echo(), "empty")
    assert read_text(known, "empty") == "hi"


def read_text(known: Registry, name: str) -> str:
    mapper = known.mapper(name)
    deltas = mapper.map_delta({"text": "hi"}, mapper.new_state()) or ()
    return "".join(delta.content_delta or "" for delta in deltas)


class Shout:
    """A wrapper: it sees what the others give, and may change it."""

    @hookimpl(wrapper=True)
    def map_delta(self, event: Any, state: Any) -> Generator[None, Any, Any]:
        """Make it loud."""
        deltas = yield
        return [ResponseDelta(d.index, content_delta=(d.content_delta or "").upper()) for d in deltas]


class OldShout:
    """A wrapper of the older kind."""

    @hookimpl(hookwrapper=True)
    def map_delta(self, event: Any) -> Generator[None, Any, None]:
        """Make it loud."""
        outcome = yield
        deltas = outcome.get_result()
        outcome.force_result(
            [ResponseDelta(d.index, content_delta=(d.content_delta or "").upper()) for d in deltas]
        )


@pytest.mark.parametrize("wrapper", [Shout(), OldShout()])
def test_a_wrapper_takes_effect(wrapper: Any) -> None:
    """A wrapped hook is called through pluggy. The plugin's promises about its own code no longer hold."""
    known = registry_of(echo=Echo())
    direct = known.mapper("echo").map_delta
    known.register(wrapper, "echo")
    mapper = known.mapper("echo")
    assert read_text(known, "echo") == "HI"
    assert not mapper.is_unmodified
    known.unregister(wrapper, "echo")
    assert known.mapper("echo").map_delta == direct


def test_a_wrapper_in_the_plugin_itself_takes_effect() -> None:
    """A plugin that wraps a hook is not plain, even when it is the only one."""

    class Measured(Echo):
        @hookimpl(wrapper=True)
        def map_usage(self) -> Generator[None, Any, Any]:
            return (yield)

    mapper = registry_of(echo=Measured()).mapper("echo")
    assert not mapper.is_unmodified
    assert mapper.map_usage({}, mapper.new_state()) is None


def test_a_wrapper_alone_implements_nothing() -> None:
    """Wrapping map_finish_reason does not turn an API without a terminal signal into one that has it."""

    class Watched(Echo):
        @hookimpl(wrapper=True)
        def map_finish_reason(self) -> Generator[None, Any, Any]:
            return (yield)

    assert not registry_of(echo=Watched()).mapper("echo").has_terminal
    with pytest.raises(PluginError, match="does not implement map_delta"):
        registry_of(shout=Shout()).mapper("shout")


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import no_such_module", "it cannot be imported: ModuleNotFoundError: No module named"),
        ("def broken(:\n", "it cannot be imported: SyntaxError"),
        ("raise SystemExit(3)", "it cannot be imported: SystemExit: 3"),
        ("raise RuntimeError", "it cannot be imported: RuntimeError"),
        ("raise ValueError('one\\n  two')", "it cannot be imported: ValueError: one two"),
        ("", "it does not implement map_delta"),
        (
            "import crosswalk\n@crosswalk.hookimpl\ndef map_delta(evnt, state): ...",
            "it breaks the hookspec: PluginValidationError: .* {'evnt'} .*can not be found in the hookspec",
        ),
        (
            "import crosswalk\n@crosswalk.hookimpl\ndef map_detla(event, state): ...",
            "it breaks the hookspec: PluginValidationError: unknown hook 'map_detla'",
        ),
        (
            "import crosswalk\n@crosswalk.hookimpl(wrapper=True)\ndef map_delta(event, state): ...",
            "it breaks the hookspec: PluginValidationError: .* not a generator function",
        ),
        (
            GOOD + "\n@hookimpl\ndef provider_info(): raise KeyError('title')",
            "provider_info failed: KeyError: 'title'",
        ),
        (
            GOOD + "\n@hookimpl\ndef provider_info(): raise NotImplementedError",
            "provider_info failed: NotImplementedError",
        ),
        (
            GOOD + "\n@hookimpl\ndef provider_info(): raise SystemExit",
            "provider_info failed: SystemExit",
        ),
        (
            GOOD + "\n@hookimpl\ndef provider_info(): return {'title': 'x'}",
            "provider_info failed: TypeError: it gives dict, not ProviderInfo",
        ),
    ],
)
def test_a_broken_plugin_is_named_and_hurts_nobody_else(install: Install, code: str, cause: str) -> None:
    """The error says provider, distribution and cause, every time. All the others still work."""
    install("broken", code or "x = 1")
    install("good")
    known = Registry(environ={})
    for _ in range(2):
        with pytest.raises(PluginError, match=cause) as caught:
            known.mapper("broken")
        assert str(caught.value).startswith("provider 'broken' (from distribution 'crosswalk-broken'): ")
        assert caught.value.plugin == "broken"
        assert caught.value.distribution == "crosswalk-broken"
        assert isinstance(caught.value, CrosswalkError)
    assert {"broken", "good", "ollama"} <= set(known.names())
    assert read_text(known, "good") == "good"
    assert known.mapper("ollama").info.title == "Ollama"


@pytest.mark.parametrize("where", ["import", "provider_info"])
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "__import__('asyncio').CancelledError"])
def test_an_interrupt_is_not_taken_for_a_broken_plugin(install: Install, where: str, error: str) -> None:
    """Ctrl-C, or the cancellation of a task, is heard while a plugin is resolved."""
    install("slow", raising(error, where))
    with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
        Registry(environ={}).mapper("slow")


@pytest.mark.parametrize("where", ["import", "provider_info"])
@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("SystemExit(9)", "SystemExit: 9"),
        ("GeneratorExit", "GeneratorExit"),
        ("StopIteration('x')", "StopIteration: x"),
        ("type('Own', (BaseException,), {})('mine')", "Own: mine"),
        ("type('Mute', (BaseException,), {'__str__': lambda self: 1 / 0})()", "Mute"),
    ],
)
def test_no_exception_of_a_plugin_ends_the_program(
    install: Install, where: str, error: str, shown: str
) -> None:
    """Not even exceptions that no ``except Exception`` catches, nor one that fails to give its text."""
    install("broken", raising(error, where))
    with pytest.raises(PluginError, match=f"{shown}$") as caught:
        Registry(environ={}).mapper("broken")
    assert type(caught.value.__cause__).__name__ == shown.partition(":")[0]


def raising(error: str, where: str) -> str:
    """The code of a plugin that raises *error* when it is imported, or when it is asked about itself."""
    return f"raise {error}" if where == "import" else f"{GOOD}\n@hookimpl\ndef provider_info(): raise {error}"


def test_a_missing_attribute_is_a_broken_plugin(install: Install) -> None:
    """An entry point may name an object that the module does not have."""
    install("broken", "x = 1", target="provider_broken:plugin")
    with pytest.raises(PluginError, match="it cannot be imported: AttributeError"):
        Registry(environ={}).mapper("broken")


def test_a_provider_described_by_nothing_promises_nothing() -> None:
    """If provider_info gives None the provider has its id for a title."""

    class Silent(Echo):
        @hookimpl
        def provider_info(self) -> None:
            return None

    assert registry_of(echo=Silent()).mapper("echo").info == ProviderInfo(title="echo")


def test_the_blame_falls_on_the_plugin_that_failed(install: Install) -> None:
    """An override that breaks an installed provider is not reported as the fault of its distribution."""

    class Bad:
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            raise RuntimeError("mine")

    install("alpha", GOOD + "\n@hookimpl\ndef provider_info(): raise RuntimeError('theirs')")
    known = Registry(environ={})
    with pytest.raises(PluginError, match="theirs") as caught:
        known.mapper("alpha")
    assert caught.value.distribution == "crosswalk-alpha"
    known.register(Bad(), "alpha")
    with pytest.raises(
        PluginError, match="provider 'alpha': provider_info failed: RuntimeError: mine"
    ) as caught:
        known.mapper("alpha")
    assert caught.value.distribution is None


def test_an_entry_point_without_a_distribution_will_do() -> None:
    """Entry points can be given. They need not belong to anything that is installed."""
    point = EntryPoint("given", "wires:Echo", ENTRY_POINT_GROUP)
    known = Registry(installed=[point], environ={})
    assert known.providers() == [ProviderEntry("given", None, None, "wires:Echo")]
    broken = Registry(installed=[EntryPoint("given", "wires:Nothing", ENTRY_POINT_GROUP)], environ={})
    with pytest.raises(PluginError, match="^provider 'given': it cannot be imported") as caught:
        broken.mapper("given")
    assert caught.value.distribution is None


def test_two_distributions_may_serve_one_name(install: Install) -> None:
    """Both are loaded under the name, as in pluggy. Both are one object when they name the same."""
    install("alpha")
    points = [
        EntryPoint("pair", "provider_alpha", ENTRY_POINT_GROUP),
        EntryPoint("pair", "provider_alpha", ENTRY_POINT_GROUP),
    ]
    known = Registry(installed=points, environ={})
    assert [entry.name for entry in known.providers()] == ["pair"]
    assert read_text(known, "pair") == "alpha"
    assert known.mapper("pair").is_unmodified


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


@pytest.mark.parametrize("turned", [False, True])
def test_another_package_overrides_what_is_shipped(install: Install, turned: bool) -> None:
    """In any order of the installation's list. The listing shows it."""
    install("alpha")
    install("beta")
    points = [
        EntryPoint("pair", f"provider_{module}", ENTRY_POINT_GROUP)._for(Dist(name))  # type: ignore[attr-defined]
        for module, name in [("alpha", "crosswalk-llm"), ("beta", "acme")]
    ]
    known = Registry(installed=reversed(points) if turned else points, environ={})
    assert read_text(known, "pair") == "beta"
    (entry,) = known.providers()
    assert (entry.distribution, entry.overrides) == ("acme", ("crosswalk-llm",))
    known.register(known, "pair")
    assert known.providers()[0].overrides == ("crosswalk-llm", "acme")


@pytest.mark.parametrize("name", [None, 7])
def test_a_name_that_is_none_is_said(name: Any) -> None:
    with pytest.raises(UnknownProviderError, match="a provider id is a string"):
        Registry(installed=[], environ={}).mapper(name)


class Fewer:
    """Takes the arguments it needs, in another order."""

    @hookimpl
    def map_delta(self, state: Any, event: Any) -> list[ResponseDelta]:
        """Take them the other way round."""
        return [ResponseDelta(content_delta=event["text"])]

    @hookimpl
    def map_usage(self) -> None:
        """Take nothing."""

    @hookimpl
    def extensions(self, event: Any) -> dict[str, Any]:
        """Take one of two."""
        return {"rest": event["rest"]}

    @hookimpl
    def map_error(self, body: Any) -> None:
        """Take the second of two."""
        assert body == "text"


def test_an_implementation_may_take_fewer_arguments() -> None:
    """Arguments are given by name, as in pluggy: those that are asked for, in any order."""
    mapper = registry_of(fewer=Fewer()).mapper("fewer")
    state = mapper.new_state()
    event = {"text": "hi", "rest": 1}
    assert [delta.content_delta for delta in mapper.map_delta(event, state) or ()] == ["hi"]
    assert mapper.map_usage(event, state) is None
    assert mapper.extensions(event, state) == {"rest": 1}  # type: ignore[misc]
    assert mapper.map_error(500, "text") is None
    assert mapper.is_unmodified


def test_a_plugin_of_one_function_is_a_whole_text_provider() -> None:
    """map_delta alone makes deltas, a response, and keeps everything else of the events."""
    deltas, response = read(Echo(), b'{"text":"Hel","n":1}\n{"text":"lo","n":1}\n')
    assert [delta.content_delta for delta in deltas] == ["Hel", "lo", None]
    assert response.text == "Hello"
    assert response.finish_reason is FinishReason.STOP
    assert response.metadata.extensions == {"text": "lo", "n": 1}
    assert response.metadata.provenance["finish_reason"] == "derived"
    assert response.metadata.provenance["usage"] == "absent"


def test_a_provider_is_resolved_once_by_however_many_threads(install: Install) -> None:
    """Threads that ask at the same moment get the same mapper. The plugin's code runs once."""
    install("counted", GOOD + "\nimport builtins\nbuiltins.imported.append(1)")
    imported: list[int] = []
    builtins.imported = imported  # type: ignore[attr-defined]
    known = Registry(environ={})
    start = threading.Barrier(8)
    found: list[Any] = []

    def ask() -> None:
        start.wait()
        known.providers()
        found.append(known.mapper("counted"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del builtins.imported  # type: ignore[attr-defined]
    assert len(found) == 8
    assert {id(mapper) for mapper in found} == {id(known.mapper("counted"))}
    assert imported == [1]


LONG = 60.0  # seconds after which a test that hangs fails; nobody waits for them


def in_a_thread(action: Callable[[], Any]) -> Any:
    """The result of *action* in its own thread, so that a hanging action fails."""
    with_result: list[Any] = []
    thread = threading.Thread(target=lambda: with_result.append(action()), daemon=True)
    thread.start()
    thread.join(LONG)
    assert with_result, "it hangs, or failed"
    return with_result[0]


def test_a_plugin_that_imports_slowly_holds_up_nobody_else(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its code runs, other threads get resolved and unresolved providers, list and register them."""
    for name in ("early", "late"):
        install(name)
    install("slow", GOOD + "\nimport builtins\nbuiltins.meanwhile()")
    known = Registry(environ={})
    known.mapper("early")
    done: list[str] = []

    def others() -> str:
        known.register(Echo(), "echo")
        known.block("blocked")
        found = [known.mapper(name).provider for name in ("early", "late", "echo")]
        assert {"slow", *found} <= {entry.name for entry in known.providers()}
        return " ".join(found)

    monkeypatch.setattr(builtins, "meanwhile", lambda: done.append(in_a_thread(others)), raising=False)
    assert in_a_thread(lambda: known.mapper("slow").provider) == "slow"
    assert done == ["early late echo"]


def test_plugins_may_ask_for_each_other_from_two_threads() -> None:
    """No thread waits for a provider that another thread resolves, so that two cannot wait for each other."""
    known = Registry(installed=[], environ={})
    both = threading.Barrier(2, timeout=LONG)

    class Asks(Echo):
        asked = False

        def __init__(self, other: str) -> None:
            self.other = other

        @hookimpl
        def provider_info(self) -> ProviderInfo:
            """Ask for the other, once."""
            if not self.asked:
                self.asked = True
                both.wait()
                known.mapper(self.other)
            return ProviderInfo(title=f"asks {self.other}")

    known.register(Asks("b"), "a")
    known.register(Asks("a"), "b")
    found: dict[str, Any] = {}
    threads = [
        threading.Thread(target=lambda name=name: found.update({name: known.mapper(name)}), daemon=True)
        for name in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert {name: mapper.info.title for name, mapper in found.items()} == {"a": "asks b", "b": "asks a"}
    assert all(known.mapper(name) is mapper for name, mapper in found.items())


def test_a_resolved_provider_is_found_while_the_registry_is_busy() -> None:
    """A listing that reads metadata from a slow disk does not hold up an answer that comes in."""
    reading, go_on = threading.Event(), threading.Event()

    class SlowDist(Dist):
        @property
        def name(self) -> str:
            """Take until the test is done."""
            reading.set()
            assert go_on.wait(LONG), "the test waits for this"
            return "slow"

    point = EntryPoint("slow", "provider_slow", ENTRY_POINT_GROUP)._for(SlowDist("slow"))  # type: ignore[attr-defined]
    known = Registry(installed=[point], environ={})
    known.register(Echo(), "echo")
    mapper = known.mapper("echo")
    listing = threading.Thread(target=known.providers, daemon=True)
    listing.start()
    try:
        assert reading.wait(LONG)
        assert in_a_thread(lambda: known.mapper("echo")) is mapper
    finally:
        go_on.set()
        listing.join(LONG)


class Described(Echo):
    """Does *meanwhile* when it is asked about itself."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Let something happen."""
        self.meanwhile()
        return ProviderInfo(title="first")


@hookimpl
def provider_info() -> ProviderInfo:
    """The newcomer's word."""
    return ProviderInfo(title="second")


def test_who_registers_while_a_provider_is_resolved_is_not_forgotten() -> None:
    """The mapper that was resolved without the newcomer is not kept."""
    known = Registry(installed=[], environ={})
    newcomer = sys.modules[__name__]
    plugin = Described(lambda: in_a_thread(lambda: known.register(newcomer, "echo") or True))  # type: ignore[redundant-expr]
    known.register(plugin, "echo")
    assert known.mapper("echo").info.title == "first"
    plugin.meanwhile = lambda: None
    assert known.mapper("echo").info.title == "second"
    known.unregister(newcomer, "echo")
    plugin.meanwhile = lambda: known.unregister(plugin, "echo")
    assert known.mapper("echo").info.title == "first"
    with pytest.raises(UnknownProviderError, match="unknown provider 'echo'"):
        known.mapper("echo")


def test_who_blocks_while_a_provider_is_resolved_is_heard() -> None:
    """It is not resolved once more."""
    known = Registry(installed=[], environ={})
    known.register(Described(lambda: known.block("echo")), "echo")
    known.mapper("echo")
    with pytest.raises(UnknownProviderError, match="'echo' is blocked"):
        known.mapper("echo")


def test_hooks_are_found_whatever_they_are_called_and_nothing_is_evaluated_for_it() -> None:
    class Named(Echo):
        """Has a hook under another name, and much that is not a hook."""

        table: ClassVar[dict[str, int]] = {"a": 1}
        kind = dict

        @staticmethod
        @hookimpl(specname="provider_info")
        def about() -> ProviderInfo:
            """See the hook ``provider_info``."""
            return ProviderInfo(title="Named")

        @property
        def costly(self) -> None:
            """Must not be asked for."""
            raise AssertionError

        def helper(self) -> None:
            """Help."""

        def __dir__(self) -> list[str]:
            return [*super().__dir__(), "only_told"]

    known = Registry(installed=[], environ={})
    known.register(Named(), "named")
    assert known.mapper("named").info.title == "Named"


NEWER = (
    "from crosswalk.plugins import ProviderInfo, hookimpl\n"
    + GOOD
    + "\n@hookimpl\ndef provider_info(): return "
)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("from crosswalk.plugins import from_the_future", "it cannot be imported: ImportError: "),
        (NEWER + "ProviderInfo(title='x', tomorrow=1)", "provider_info failed: TypeError: "),
        (
            NEWER + "ProviderInfo(title='x', api='1.999')",
            "it is written for version 1.999 of the plugin API, and this is 1.[0-9]+: upgrade crosswalk-llm",
        ),
        (NEWER + "ProviderInfo(title='x', api=2)", "it is written for version 2 .*: upgrade crosswalk-llm"),
        (
            NEWER + "ProviderInfo(title='x', api='0.7')",
            "it is written for version 0.7 .*: upgrade the plugin",
        ),
    ],
)
@pytest.mark.parametrize(
    ("requires", "advice"),
    [
        ("Requires-Dist: httpx>=900\nRequires-Dist: crosswalk_llm[testing]>=999.1,<1000\n", True),
        ("Requires-Dist: crosswalk-llm (>=999.1) ; python_version > '3'\n", True),
        ("Requires-Dist: crosswalk-llm>=0.0.1\n", False),
        ("Requires-Dist: crosswalk-llm>=0.0\n", False),
        ("Requires-Dist: crosswalk-llm\n", False),
        ("", False),
    ],
)
def test_a_plugin_for_a_newer_crosswalk_says_which_version_to_install(
    install: Install, code: str, cause: str, requires: str, advice: bool
) -> None:
    """Its own requirement knows, whatever the first thing is that it misses."""
    install("newer", code, requires=requires)
    known = Registry(environ={})
    with pytest.raises(PluginError, match=cause) as caught:
        known.mapper("newer")
    needs = "; it requires crosswalk-llm>=999.1, and "
    assert (needs in str(caught.value)) is advice
    assert str(caught.value).endswith("pip install 'crosswalk-llm>=999.1'") is advice


@pytest.mark.parametrize(
    ("api", "version"), [(1, (1, 0)), ("1.0", (1, 0)), ("1", None), ("1.2.3", None), (True, None)]
)
def test_a_version_of_the_plugin_api_is_a_number_or_two(api: Any, version: tuple[int, int] | None) -> None:
    if version is None:
        with pytest.raises(TypeError, match="api is a whole number or a text such as '1.2'"):
            ProviderInfo(title="x", api=api)
    else:
        assert ProviderInfo(title="x", api=api).api_version == version


def test_an_override_that_describes_itself_keeps_what_it_does_not_mention() -> None:
    """Its description goes over that of the provider, field by field, and wrappers see both as one."""

    class Base(Echo):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="Base", endpoints=("/v1",), speaks=("other",), pieces=("a",))

    class Over:
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="Over", api="1.0", pieces=("b",))

    class Around:
        @hookimpl(wrapper=True)
        def provider_info(self) -> Generator[None, ProviderInfo, ProviderInfo]:
            info = yield
            return attrs.evolve(info, documentation=f"{info.title} {info.endpoints[0]}")

    class Silent:
        @hookimpl
        def provider_info(self) -> None:
            return None

    known = registry_of(base=Base())
    for plugin in (Around(), Over(), Silent()):
        known.register(plugin, "base")
    info = known.mapper("base").info
    assert (info.title, info.api, info.endpoints) == ("Over", "1.0", ("/v1",))
    assert (info.speaks, info.pieces, info.documentation) == (("other",), ("b",), "Over /v1")


@pytest.mark.parametrize(
    "name", ["", "../x", "ollama:foo", "My Provider", "\u00fc", "-x", "x.", "x" * 101, "vllm@x"]
)
def test_a_name_that_is_no_provider_id_is_refused(install: Install, name: str) -> None:
    with pytest.raises(ValueError, match="not a provider id: .*letters, digits"):
        registry_of(echo=Echo()).register(Echo(), name)


def test_an_entry_point_without_a_provider_id_is_ignored_with_a_warning() -> None:
    named = [EntryPoint(name, "wires:Echo", ENTRY_POINT_GROUP) for name in ("x" * 100, "../x")]
    known = Registry(installed=named, environ={})
    with pytest.warns(RuntimeWarning, match="not a provider id: '../x'"):
        assert known.names() == ["x" * 100]


def test_a_plugin_that_is_installed_later_is_found_after_a_refresh(install: Install) -> None:
    """As in a notebook. The error of an unknown name shows it."""
    install("alpha")
    known = Registry(environ={})
    before = known.mapper("alpha")
    install("beta")
    install("over", GOOD.replace("NAME", "'over'"), distribution="a-later-one")
    with pytest.raises(UnknownProviderError) as caught:
        known.mapper("beta")
    assert caught.value.__notes__ == [
        "If its plugin was installed after this program began, call registry.refresh()."
    ]
    known.refresh()
    assert read_text(known, "beta") == "beta"
    assert known.mapper("alpha") is not before
    assert {"alpha", "beta", "over"} <= set(known.names())
