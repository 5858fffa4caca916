"""A resolved provider: its hooks as plain, typed callables, looked up once and not for every delta."""

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
from crosswalk.types.finish import FinishReason
from crosswalk.types.merge import copy_json
from crosswalk.types.usage import UsageInfo
from crosswalk.wire.limits import DEFAULT, Limits
from crosswalk.wire.sniff import SniffingDecoder

__all__ = ["HOOKS", "Mapper", "check_info", "implements", "is_cancellation", "is_wrapper", "resolve"]

Hook: TypeAlias = Callable[..., Any]

HOOKS: dict[str, tuple[str, ...]] = {
    name: hook.__code__.co_varnames[1:]
    for name, hook in vars(ProviderHooks).items()
    if hasattr(hook, "crosswalk_spec")
}
"""The arguments of each hook, as its specification has them."""
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
    """A provider, ready to map.

    Attributes:
        provider: the provider id.
        info: what the plugin says about the provider.
        map_delta: an event to its deltas.
        map_finish_reason: a finish word to its canonical reason.
        map_usage: an event to its token counts, or ``None``.
        extensions: what is left of an event to what of it belongs into the extensions; ``None`` for all of it.
        map_error: an HTTP error to what it means, or ``None`` for the general rules.
        recognizes: how well an event fits this provider.
        build_request: a canonical request to the provider's; ``None`` when the plugin cannot.
        has_terminal: whether the API says when an answer has ended; if not, the end of the input is the end.
        is_unmodified: whether one plugin gives all mapping hooks, unwrapped, and its class declares its own paths, so that
            the promise of ``ProviderInfo.text_paths`` holds.
        lookup: gives another provider's mapper, for the dialects that this one speaks too; ``None`` where there is
            no registry to ask.
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
    _dialects: dict[str, tuple[Mapper, Mapper]] = attrs.field(factory=dict, init=False)

    def dialect_of(self, event: Any) -> Mapper | None:
        """Who reads an answer with *event* in it: this mapper, or a provider's whose dialect the server speaks too.

        ``None`` when none of them recognizes it. One that is blocked, missing or broken is not asked.
        """
        if self.recognizes(event):
            return self
        found = next((other for other in self._others() if other.recognizes(event)), None)
        if found is None:
            return None
        # Made once for each; but a provider may have been registered anew.
        known = self._dialects.get(found.provider)
        if known is None or known[0] is not found:
            known = self._dialects[found.provider] = found, attrs.evolve(found, provider=self.provider)
        return known[1]

    def endpoints(self) -> tuple[str, ...]:
        """The HTTP paths whose answers this mapper reads, those of the dialects that the server speaks too included."""
        readers = (self, *self._others())
        return tuple(dict.fromkeys(path for reader in readers for path in reader.info.endpoints))

    def _others(self) -> Iterator[Mapper]:
        """The mappers of the dialects that the server speaks too, without those that are blocked, missing or broken."""
        if self.lookup is not None:
            for name in self.info.speaks:
                with suppress(PluginError):
                    yield self.lookup(name)

    def new_decoder(self, limits: Limits = DEFAULT, *, content_type: str = "") -> SniffingDecoder:
        """The decoder of an answer of which HTTP says that it is of *content_type*, without parameters."""
        info = self.info
        return SniffingDecoder(limits, info.framing, content_type=content_type, text_events=info.text_events)

    def new_state(self) -> MappingState:
        """The state of one answer that begins."""
        return MappingState(self.provider)

    def broken(self, cause: str) -> PluginError:
        """The error of a plugin that does not do as its hookspec says."""
        return PluginError(f"provider {self.provider!r}: {cause}", plugin=self.provider)


def resolve(
    provider: str, manager: pluggy.PluginManager, lookup: Callable[[str], Mapper] | None = None
) -> Mapper:
    """The mapper of the one provider whose plugin, overrides and wrappers *manager* holds.

    *lookup* gives it the mappers of other providers.

    Raises:
        Exception: whatever ``provider_info`` raises; a ``TypeError`` when it gives something else.
    """
    mapping_hooks = [hook for name in _MAPPING for hook in getattr(manager.hook, name).get_hookimpls()]
    is_wrapped = any(map(is_wrapper, mapping_hooks))
    found: dict[str, Any] = {
        name: _callable(manager, name, is_wrapped=is_wrapped) for name in HOOKS if implements(manager, name)
    }
    info, plugins = found.get("provider_info", _nothing)(), [*manager.get_plugins()]
    check_info(info)
    if "recognizes" in found:
        found["recognizes"] = _checked(provider, found["recognizes"])
    return Mapper(
        provider=provider,
        info=info or ProviderInfo(title=provider),
        has_terminal="map_finish_reason" in found,
        is_unmodified=not is_wrapped and len(plugins) == 1 and declares_its_paths(plugins[0]),
        lookup=lookup,
        **{name: hook for name, hook in found.items() if name != "provider_info"},
    )


def check_info(info: Any) -> None:
    """Raise a TypeError if *info*, a plugin's description, is not one, or is written for another version."""
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
    """Whether the paths of *plugin* are declared by the class whose methods read its events, in its dialects as well.

    A class that overrides a method of the class that declares ``text_paths`` may read otherwise than that one promised.
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
            # What comes in between by multiple inheritance may override a method of the bases.
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
    """*recognizes*, with a :class:`PluginError` where it gives neither a :class:`Recognition` nor the number of one."""

    def recognition(event: Any) -> Recognition:
        found = recognizes(event)
        if type(found) is Recognition:  # to make one of it takes as long as most hooks
            return found
        try:
            return Recognition.NO if found is None else Recognition(found)
        except ValueError:
            kind = type(found).__name__
        raise PluginError(f"provider {provider!r}: recognizes gave {kind}, not Recognition", plugin=provider)

    return recognition


def is_cancellation(error: BaseException) -> bool:
    """Whether *error* ends the program or a task of it, and is no fault of a plugin; asyncio need not be imported for it."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, KeyboardInterrupt) or not names.isdisjoint({"CancelledError", "Cancelled"})


def implements(manager: pluggy.PluginManager, name: str) -> bool:
    """Whether anybody implements hook *name*; a wrapper alone implements nothing."""
    caller: pluggy.HookCaller = getattr(manager.hook, name)
    return not all(map(is_wrapper, caller.get_hookimpls()))


def _callable(manager: pluggy.PluginManager, name: str, *, is_wrapped: bool) -> Hook:
    """Hook *name*, which somebody implements, as a function of its positional arguments.

    A single implementation is called directly: a call through pluggy costs some ten times as much. Where a mapping hook
    *is_wrapped*, wrappers get each event whole, whatever the hooks before have taken of it.
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
        return lambda *given: function(*(given[place] for place in places))
    return lambda *given: caller(**dict(zip(arguments, given, strict=True)))


def is_wrapper(implementation: pluggy.HookImpl) -> bool:
    """Whether *implementation* only surrounds others."""
    return bool(implementation.wrapper or implementation.hookwrapper)


class _Whole(dict[str, Any]):
    """A copy of an event as the provider sent it, for wrappers, with the one that the hooks take apart."""

    live: dict[str, Any]


def _around(caller: pluggy.HookCaller, *, is_first: bool) -> Hook:
    """*caller* with wrappers that see the event whole; its other implementations get the event that is taken apart."""
    for implementation in caller.get_hookimpls():
        if not is_wrapper(implementation) and "event" in implementation.argnames:
            place = implementation.argnames.index("event")
            left = _on_what_is_left(implementation.function, place)
            object.__setattr__(implementation, "function", left)  # this provider's own record of it

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
        left = event.live if type(event) is _Whole else event
        return function(*given[:place], left, *given[place + 1 :])

    return call
