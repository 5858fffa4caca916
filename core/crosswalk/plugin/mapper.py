"""A resolved provider: its hooks as plain, typed callables, looked up once instead of for every delta."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any, Final, TypeAlias

import attrs
import pluggy

from crosswalk.errors import ErrorInfo, PluginError, UnknownFinishReasonError
from crosswalk.plugin.hookspecs import ProviderHooks
from crosswalk.plugin.info import API, API_MINOR, ProviderInfo, Recognition
from crosswalk.plugin.state import MappingState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import copy_json
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason
from crosswalk.wire.framing import DEFAULT, Limits, SniffingDecoder

Hook: TypeAlias = Callable[..., Any]

HOOKS: dict[str, tuple[str, ...]] = {
    name: hook.__code__.co_varnames[1:]
    for name, hook in vars(ProviderHooks).items()
    if hasattr(hook, "crosswalk_spec")
}
"""The arguments of each hook, as in its specification."""
_MAPPING = ("map_delta", "map_usage", "extensions")


def _nothing(*_: Any) -> None:
    return None


def _canonical_word(reason: str, _: MappingState) -> FinishReason:
    try:
        return FinishReason(reason)
    except ValueError:
        raise UnknownFinishReasonError(reason) from None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Mapper:
    """A provider that is ready to map.

    Attributes:
        provider: the provider id.
        info: the plugin's description of the provider.
        map_delta: maps an event to its deltas.
        map_finish_reason: maps a finish word to its canonical reason.
        map_usage: maps an event to its token counts, or ``None``.
        extensions: maps the residue of an event to the part of it that belongs into the extensions, or ``None`` for
            all.
        map_error: maps an HTTP error to its meaning, or ``None`` for the general rules.
        recognizes: returns how well an event fits this provider.
        build_request: maps a canonical request to the provider's, or ``None`` if the plugin cannot.
        has_terminal: whether the API signals the end of an answer. If not, the end of the input is the end.
        is_unmodified: whether one plugin implements all mapping hooks, unwrapped, and its class declares its own paths,
            so that the promise of ``ProviderInfo.text_paths`` holds.
        lookup: returns another provider's mapper, for the dialects that this one also speaks, or ``None`` if there is
            no registry.
        shipped: the provider as Crosswalk ships it, which recognizes its dialect for servers that also speak it, or
            ``None`` if this is that, or if Crosswalk does not ship it.
    """

    provider: str
    info: ProviderInfo
    map_delta: Callable[[Any, MappingState], Iterable[ResponseDelta] | None]
    map_finish_reason: Callable[[str, MappingState], FinishReason | None] = _canonical_word
    map_usage: Callable[[Any, MappingState], UsageInfo | None] = _nothing
    extensions: Callable[[Any, MappingState], dict[str, Any] | None] | None = None
    map_error: Callable[[int, Any], ErrorInfo | None] = _nothing
    recognizes: Callable[[Any], Recognition | None] = _nothing
    build_request: Callable[[Any], Any] | None = None
    has_terminal: bool
    is_unmodified: bool
    lookup: Callable[[str], Mapper] | None = None
    shipped: Mapper | None = None
    _dialects: dict[str, tuple[Mapper, Mapper]] = attrs.field(factory=dict, init=False)

    def dialect_of(self, event: Any) -> Mapper | None:
        """Return the mapper that reads an answer with *event* in it: this one, or that of a dialect that the server
        speaks too.

        ``None`` if none of them recognizes it. Blocked, missing and broken providers are skipped.
        """
        if self.recognizes(event):
            return self
        others = self._others()
        result = next((other for other in others if (other.shipped or other).recognizes(event)), None)
        if result is None:
            return None
        # Made once for each provider, unless it was registered anew.
        known = self._dialects.get(result.provider)
        if known is None or known[0] is not result:
            known = self._dialects[result.provider] = result, attrs.evolve(result, provider=self.provider)
        return known[1]

    def endpoints(self) -> tuple[str, ...]:
        """The HTTP paths with answers that this mapper reads, including those of the dialects that the server speaks
        too.
        """
        readers = (self, *self._others())
        return tuple(dict.fromkeys(path for reader in readers for path in reader.info.endpoints))

    def _others(self) -> Iterator[Mapper]:
        """The mappers of the dialects that the server speaks too, without those that are blocked, missing or broken."""
        if self.lookup is not None:
            for name in self.info.speaks:
                with suppress(PluginError):
                    yield self.lookup(name)

    def new_decoder(self, limits: Limits = DEFAULT, *, content_type: str = "") -> SniffingDecoder:
        """Return the decoder of an answer with the HTTP content type *content_type*, without parameters."""
        info = self.info
        return SniffingDecoder(limits, info.framing, content_type=content_type, text_events=info.text_events)

    def new_state(self) -> MappingState:
        """Return the state of a new answer."""
        return MappingState(self.provider)

    def broken(self, cause: str) -> PluginError:
        """Return the error for a plugin that breaks its hookspec."""
        return PluginError(f"provider {self.provider!r}: {cause}", plugin=self.provider)


def resolve(
    provider: str, manager: pluggy.PluginManager, lookup: Callable[[str], Mapper] | None = None
) -> Mapper:
    """Return the mapper of the one provider with the plugin, overrides and wrappers that *manager* holds.

    *lookup* gives it the mappers of other providers.

    Raises:
        Exception: any exception of ``provider_info``, or a ``TypeError`` if it returns something else.
    """
    mapping_hooks = [hook for name in _MAPPING for hook in getattr(manager.hook, name).get_hookimpls()]
    is_wrapped = any(map(is_wrapper, mapping_hooks))
    results: dict[str, Any] = {
        name: _callable(manager, name, is_wrapped=is_wrapped) for name in HOOKS if implements(manager, name)
    }
    info, plugins = results.get("provider_info", _nothing)(), [*manager.get_plugins()]
    check_info(info)
    if "recognizes" in results:
        results["recognizes"] = _checked(provider, results["recognizes"])
    return Mapper(
        provider=provider,
        info=info or ProviderInfo(title=provider),
        has_terminal="map_finish_reason" in results,
        is_unmodified=not is_wrapped and len(plugins) == 1 and declares_its_paths(plugins[0]),
        lookup=lookup,
        **{name: hook for name, hook in results.items() if name != "provider_info"},
    )


def check_info(info: Any) -> None:
    """Raise a TypeError if *info*, a plugin's description, has another type, or is written for another version."""
    if not isinstance(info, ProviderInfo | None):
        raise TypeError(f"it gives {type(info).__name__}, not ProviderInfo")
    if info is not None and (info.api_version[0] != API or info.api_version[1] > API_MINOR):
        outdated = "crosswalk-llm" if info.api_version > (API, API_MINOR) else "the plugin"
        raise TypeError(
            f"it is written for version {info.api} of the plugin API, and this is {API}.{API_MINOR}: "
            f"upgrade {outdated}"
        )


_NOT_READING: Final = {"build_request", "is_marked", "map_error", "map_finish_reason", "recognizes", "spell"}
"""Methods that take nothing from an event."""


def declares_its_paths(plugin: Any) -> bool:
    """Whether the class with the methods that read the events of *plugin* declares its paths, also in its dialects.

    A class that overrides a method of the class that declares ``text_paths`` may read differently from that promise.
    """
    dialects = getattr(plugin, "dialects", ())
    return _reads_as_declared(plugin) and all(
        _reads_as_declared(dialect) and hasattr(dialect, "text_paths") for dialect in dialects
    )


def _reads_as_declared(plugin: Any) -> bool:
    declaration = "text_paths" if hasattr(plugin, "text_paths") else "provider_info"
    classes = () if isinstance(plugin, ModuleType) else type(plugin).__mro__[:-1]
    kinds = [kind for kind in (plugin, *classes) if hasattr(kind, "__dict__")]
    for number, kind in enumerate(kinds):
        own = vars(kind).keys()
        if declaration in own:
            # A class that comes in between by multiple inheritance may override a method of the bases.
            return kind not in classes or classes[classes.index(kind) :] == kind.__mro__[:-1]
        if any(_overrides(name, vars(kind)[name], kinds[number + 1 :]) for name in own - _NOT_READING):
            return False
    return True


def _overrides(name: str, value: Any, bases: list[Any]) -> bool:
    if name in ("__getattr__", "__getattribute__"):
        return True
    is_method = callable(value) or hasattr(type(value), "__get__")
    return is_method and not name.startswith("__") and any(name in vars(base) for base in bases)


def _checked(provider: str, recognizes: Hook) -> Hook:
    """Wrap *recognizes*: it raises :class:`PluginError` if it returns neither a :class:`Recognition` nor its number."""

    def recognition(event: Any) -> Recognition:
        result = recognizes(event)
        if type(result) is Recognition:  # converting it takes as long as most hooks
            return result
        try:
            return Recognition.NO if result is None else Recognition(result)
        except ValueError:
            kind = type(result).__name__
        raise PluginError(f"provider {provider!r}: recognizes gave {kind}, not Recognition", plugin=provider)

    return recognition


def is_cancellation(error: BaseException) -> bool:
    """Whether *error* ends the program or a task, and is not a fault of a plugin. Does not import asyncio."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, KeyboardInterrupt) or not names.isdisjoint({"CancelledError", "Cancelled"})


def implements(manager: pluggy.PluginManager, name: str) -> bool:
    """Whether any plugin implements hook *name*. A wrapper alone implements nothing."""
    caller: pluggy.HookCaller = getattr(manager.hook, name)
    return not all(map(is_wrapper, caller.get_hookimpls()))


def _callable(manager: pluggy.PluginManager, name: str, *, is_wrapped: bool) -> Hook:
    """Return hook *name*, which is implemented, as a function of its positional arguments.

    A single implementation is called directly: a call through pluggy costs about ten times as much. If a mapping hook
    *is_wrapped*, wrappers get each event whole, even if hooks before have taken parts of it.
    """
    caller: pluggy.HookCaller = getattr(manager.hook, name)
    implementations = caller.get_hookimpls()
    arguments = HOOKS[name]
    if is_wrapped and name in _MAPPING:
        return _around(caller, is_first=name == "map_delta")
    if len(implementations) == 1:
        function, taken = implementations[0].function, tuple(implementations[0].argnames)
        if taken == arguments:
            return function
        places = [arguments.index(argument) for argument in taken]
        return lambda *given: function(*(given[location] for location in places))
    return lambda *given: caller(**dict(zip(arguments, given, strict=True)))


def is_wrapper(implementation: pluggy.HookImpl) -> bool:
    """Whether *implementation* only wraps others."""
    return bool(implementation.wrapper or implementation.hookwrapper)


class _Whole(dict[str, Any]):
    """A copy of an event as the provider sent it, for wrappers, with the event that the hooks take apart."""

    live: dict[str, Any]


def _around(caller: pluggy.HookCaller, *, is_first: bool) -> Hook:
    """Return *caller* with wrappers that get the event whole. Its other implementations get the one that is taken
    apart.
    """
    for implementation in caller.get_hookimpls():
        if not is_wrapper(implementation) and "event" in implementation.argnames:
            location = implementation.argnames.index("event")
            remaining = _on_what_is_left(implementation.function, location)
            object.__setattr__(implementation, "function", remaining)  # this provider's own record of it

    def call(event: Any, state: MappingState) -> Any:
        if is_first:
            state.whole = event
            if type(event) is dict:
                state.whole = _Whole(copy_json(event))
        if type(state.whole) is _Whole:
            state.whole.live = event
        return caller(event=state.whole, state=state)

    return call


def _on_what_is_left(function: Hook, place: int) -> Hook:
    def call(*given: Any) -> Any:
        event = given[place]
        remaining = event.live if type(event) is _Whole else event
        return function(*given[:place], remaining, *given[place + 1 :])

    return call
