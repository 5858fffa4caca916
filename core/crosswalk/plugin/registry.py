"""Providers by name: their plugins are loaded and resolved, and a broken one is kept from affecting the others."""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module, invalidate_caches
from inspect import Parameter, getattr_static, signature
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias

import attrs
import pluggy

from crosswalk.errors import (
    ErrorInfo,
    MappingError,
    PluginError,
    UnknownEventError,
    UnknownFinishReasonError,
    UnknownProviderError,
)
from crosswalk.lazy import pattern
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.hooks import (
    API,
    API_MINOR,
    NO_NAMES,
    PROJECT,
    Names,
    ProviderHooks,
    ProviderInfo,
    Recognition,
    hookimpl,
)
from crosswalk.plugin.installed import (
    Point,
    distribution_of,
    installed_points,
    normal_distribution,
    source_of,
    unmet_requirement,
)
from crosswalk.plugin.state import MappingState
from crosswalk.text import meant, where_raised
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import MergeRules, copy_json, merge_rules
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason
from crosswalk.wire.framing import DEFAULT, Decoder, Frame, Limits, NeedMore, SniffingDecoder
from crosswalk.words import right_word

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# ---------------------------------------------------------------------------------- mapper
# A resolved provider: its hooks as plain, typed callables, looked up once instead of for every delta.


Hook: TypeAlias = Callable[..., Any]

HOOKS: dict[str, tuple[str, ...]] = {
    name: hook.__code__.co_varnames[1:]
    for name, hook in vars(ProviderHooks).items()
    if hasattr(hook, "crosswalk_spec")
}
"""The arguments of each hook, as in its specification."""
_MAPPING_HOOKS = ("map_delta", "map_usage", "extensions")


def _nothing(*_: Any) -> None:
    return None


def _canonical_word(reason: str, _: MappingState) -> FinishReason:
    try:
        return FinishReason(reason)
    except ValueError:
        raise UnknownFinishReasonError(reason) from None


def requests_of(module: str) -> Callable[[Any], Any]:
    """Return a hook ``build_request`` that calls the function of that name in *module*.

    *module* is imported when a request is built, so reading answers loads no part of the service. In a class it is a
    static method: ``build_request = staticmethod(requests_of("my_plugin.requests"))``.
    """

    imported = cache(partial(import_module, module))

    @hookimpl
    def build_request(request: Any) -> Any:
        return imported().build_request(request)

    return build_request


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
        ignored: the distributions with a broken override of it, in place of which the shipped provider is used.
        lookup: returns another provider's mapper, for the dialects that this one also speaks, or ``None`` if there is
            no registry.
        shipped: the provider as Crosswalk ships it, which recognizes its dialect for servers that also speak it, or
            ``None`` if this is that, or if Crosswalk does not ship it.
        learned: what is found out once about the requests of this provider, by name.
        rules: how the fields of several events are merged.
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
    ignored: tuple[str, ...] = ()
    lookup: Callable[[str], Mapper] | None = None
    shipped: Mapper | None = None
    learned: dict[str, Any] = attrs.field(factory=dict, init=False)
    _dialects: dict[str, tuple[Mapper, Mapper]] = attrs.field(factory=dict, init=False)
    rules: MergeRules = attrs.field(init=False)
    _framing_count: int = attrs.field(init=False)  # of the arguments of the framing

    @rules.default
    def _merge_rules(self) -> MergeRules:
        return merge_rules(self.info.pieces, self.info.cumulative)

    @_framing_count.default
    def _count_framing(self) -> int:
        return 0 if self.info.framing is None else _positional_count(self.info.framing)

    def dialect_of(self, event: Any) -> Mapper | None:
        """Return the mapper that reads an answer with *event* in it: this one, or that of a dialect that the server
        speaks too.

        ``None`` if none of them recognizes it. Blocked, missing and broken providers are skipped.
        """
        if self.recognizes(event):
            return self
        others = self._others()
        mapper = next((other for other in others if (other.shipped or other).recognizes(event)), None)
        if mapper is None:
            return None
        # Made once for each provider, unless it was registered anew.
        entry = self._dialects.get(mapper.provider)
        if entry is None or entry[0] is not mapper:
            entry = self._dialects[mapper.provider] = mapper, attrs.evolve(mapper, provider=self.provider)
        return entry[1]

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
        own = None if info.framing is None else self.own_decoder
        return SniffingDecoder(limits, own, content_type=content_type, text_events=info.text_events)

    def own_decoder(self, start: bytes, limits: Limits, content_type: str) -> Decoder | NeedMore | None:
        """Return what ``ProviderInfo.framing`` gives, called with as many arguments as it takes.

        Raises:
            PluginError: it fails, or gives something else.
        """
        framing = self.info.framing
        if framing is None:
            return None
        decoder = self.call_framing(framing, *(start, limits, content_type)[: self._framing_count])
        if decoder is None or isinstance(decoder, NeedMore):
            return decoder
        if not all(callable(getattr(decoder, name, None)) for name in ("decode", "flush")):
            raise self.broken(f"its framing gave {type(decoder).__name__}, not a decoder")
        return _FencedDecoder(self, decoder)

    def call_framing(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call *function*, a part of the plugin's framing.

        Raises:
            PluginError: it fails with any error that is not of the bytes. Its ``SystemExit`` must not end the program.
        """
        try:
            return function(*arguments)
        except BaseException as error:
            if isinstance(error, MappingError) or is_cancellation(error):
                raise
            raise self.failed("its framing", error) from error

    def new_state(self) -> MappingState:
        """Return the state of a new answer."""
        return MappingState(self.provider)

    def broken(self, cause: str) -> PluginError:
        """Return the error for a plugin that breaks its hookspec."""
        return PluginError(f"provider {self.provider!r}: {cause}", plugin=self.provider)

    def failed(self, part: str, error: BaseException) -> PluginError:
        """Return the error for a *part* of the plugin that raised *error*. It says where, and quotes no content."""
        return self.broken(f"{part} failed with {type(error).__name__}{where_raised(error)}")


@attrs.frozen
class _FencedDecoder:
    """The decoder of a plugin's own framing. Its failures are the plugin's, and what it gives are frames."""

    _mapper: Mapper
    _decoder: Decoder

    def decode(self, chunk: bytes) -> list[Frame]:
        return self._checked(self._mapper.call_framing(self._decoder.decode, chunk))

    def flush(self) -> list[Frame]:
        return self._checked(self._mapper.call_framing(self._decoder.flush))

    def _checked(self, frames: Any) -> list[Frame]:
        for frame in frames if isinstance(frames, list) else (frames,):
            is_frame = isinstance(frame, tuple) and len(frame) == 2 and isinstance(frame[0], bytes)
            if not is_frame or not isinstance(frame[1], str | None):
                raise self._mapper.broken(f"its decoder gave {type(frame).__name__}, not bytes and a name")
        return list(frames)


_FRAMING_ARGUMENTS: Final = 3


def _positional_count(framing: Callable[..., Any]) -> int:
    """Return how many of the arguments of a framing *framing* takes by position."""
    try:
        kinds = [parameter.kind for parameter in signature(framing).parameters.values()]
    except (TypeError, ValueError):  # written in C
        return _FRAMING_ARGUMENTS
    if Parameter.VAR_POSITIONAL in kinds:
        return _FRAMING_ARGUMENTS
    return sum(kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)


def resolve(
    provider: str, manager: pluggy.PluginManager, lookup: Callable[[str], Mapper] | None = None
) -> Mapper:
    """Return the mapper of the one provider with the plugin, overrides and wrappers that *manager* holds.

    *lookup* gives it the mappers of other providers.

    Raises:
        Exception: any exception of ``provider_info``, or a ``TypeError`` if it returns something else.
    """
    mapping_hooks = [hook for name in _MAPPING_HOOKS for hook in getattr(manager.hook, name).get_hookimpls()]
    is_wrapped = any(map(is_wrapper, mapping_hooks))
    hooks: dict[str, Any] = {
        name: _callable(manager, name, is_wrapped=is_wrapped) for name in HOOKS if implements(manager, name)
    }
    info, plugins = hooks.get("provider_info", _nothing)(), [*manager.get_plugins()]
    check_info(info)
    if info is not None and info.framing and _positional_count(info.framing) < _FRAMING_ARGUMENTS:
        message = (
            f"provider {provider!r}: since API 1.1 framing gets three arguments: start, limits, content_type"
        )
        warnings.warn(message, DeprecationWarning, stacklevel=2)
    if "recognizes" in hooks:
        hooks["recognizes"] = _checked(provider, hooks["recognizes"])
        if info is not None and info.nested:
            hooks["recognizes"] = _of_opened(hooks["recognizes"], info)
    return Mapper(
        provider=provider,
        info=info or ProviderInfo(title=provider),
        has_terminal="map_finish_reason" in hooks,
        is_unmodified=not is_wrapped and len(plugins) == 1 and declares_its_paths(plugins[0]),
        lookup=lookup,
        **{name: hook for name, hook in hooks.items() if name != "provider_info"},
    )


def check_info(info: Any) -> None:
    """Raise a TypeError if *info*, a plugin's description, has another type, or is written for another version."""
    if not isinstance(info, ProviderInfo | None):
        raise TypeError(f"it gives {type(info).__name__}, not ProviderInfo")
    if info is not None and (info.api_version[0] != API or info.api_version[1] > API_MINOR):
        outdated_package = "crosswalk-llm" if info.api_version > (API, API_MINOR) else "the plugin"
        raise TypeError(
            f"it is written for version {info.api} of the plugin API, and this is {API}.{API_MINOR}: "
            f"upgrade {outdated_package}"
        )


_NON_READING_METHODS: Final = {
    "build_request",
    "built",
    "is_marked",
    "map_error",
    "map_finish_reason",
    "recognizes",
    "spell",
}
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
        own_names = vars(kind).keys()
        if declaration in own_names:
            # A class that comes in between by multiple inheritance may override a method of the bases.
            return kind not in classes or classes[classes.index(kind) :] == kind.__mro__[:-1]
        if any(
            _overrides(name, vars(kind)[name], kinds[number + 1 :])
            for name in own_names - _NON_READING_METHODS
        ):
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
            type_name = type(result).__name__
        raise PluginError(
            f"provider {provider!r}: recognizes gave {type_name}, not Recognition", plugin=provider
        )

    return recognition


def _of_opened(recognizes: Hook, info: ProviderInfo) -> Hook:
    """Return *recognizes* for events that come closed, see ``ProviderInfo.nested``. What cannot be opened stays as it is."""

    def recognition(event: Any) -> Any:
        with suppress(MappingError):
            event = info.opened(event)
        return recognizes(event)

    return recognition


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
    if is_wrapped and name in _MAPPING_HOOKS:
        return _around(caller, is_first=name == "map_delta")
    if len(implementations) == 1:
        function, own_arguments = implementations[0].function, tuple(implementations[0].argnames)
        if own_arguments == arguments:
            return function
        positions = [arguments.index(argument) for argument in own_arguments]
        return lambda *values: function(*(values[position] for position in positions))
    return lambda *values: caller(**dict(zip(arguments, values, strict=True)))


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
            position = implementation.argnames.index("event")
            unwrapped_function = _on_what_is_left(implementation.function, position)
            object.__setattr__(
                implementation, "function", unwrapped_function
            )  # this provider's own record of it

    def call(event: Any, state: MappingState) -> Any:
        if is_first:
            state.whole = event
            if type(event) is dict:
                state.whole = _Whole(copy_json(event))
        if type(state.whole) is _Whole:
            state.whole.live = event
        return caller(event=state.whole, state=state)

    return call


def _on_what_is_left(function: Hook, position: int) -> Hook:
    def call(*values: Any) -> Any:
        event = values[position]
        remaining_event = event.live if type(event) is _Whole else event
        return function(*values[:position], remaining_event, *values[position + 1 :])

    return call


# -------------------------------------------------------------------------------- dialects
# Providers with several dialects, such as a server that also answers in OpenAI's form.


class Dialect(Protocol):
    """A family of wire formats: the mapping hooks as methods, which need no ``@hookimpl``.

    A dialect may also have a method ``extensions`` for the residue of an event, like the hook. If all its streams end
    with ``[DONE]``, its attribute ``sentinel`` is true. If the content of its answers is in other objects than that of the
    other dialects, its ``message_paths`` name them (see ``ProviderInfo``).
    """

    def recognizes(self, event: Any) -> Recognition:
        """Return how well *event* fits, see the hook ``recognizes``."""

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return the deltas of *event*, see the hook ``map_delta``."""

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Return the meaning of a finish word, see the hook ``map_finish_reason``."""

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the token counts of *event*, ``None`` without any, see the hook ``map_usage``."""


class DialectFamily:
    """A provider that speaks several dialects: the first event decides which one reads the stream.

    Args:
        dialects: in order of preference, where two recognize an event equally.

    Attributes:
        undecided: the types of events that begin streams of any of them. The first dialect reads them, and a later event
            decides.
    """

    undecided: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *dialects: Dialect) -> None:
        self.dialects = dialects

    def dialect(self, event: Any, state: MappingState) -> Dialect:
        """Return the dialect of this stream. A subclass may override it.

        Raises:
            UnknownEventError: none of them recognizes its first event.
        """
        chosen_dialect: Dialect | None = state.dialect
        if chosen_dialect is None:
            if type(event) is dict and event.get("type") in self.undecided:
                return self.dialects[0]
            best_recognition, chosen_dialect = self._best(event)
            if best_recognition is Recognition.NO:
                if type(event) is dict and event.get("error"):
                    return self.dialects[0]  # it says what has failed, in the words of another server
                raise unknown_event(event, "an event of an unknown dialect")
            state.dialect = chosen_dialect
        return chosen_dialect

    def _best(self, event: Any) -> tuple[Recognition, Dialect]:
        """Return how well *event* fits the dialect that it fits best, the first one of equals, and this dialect."""
        best_recognition, best_dialect = Recognition.NO, self.dialects[0]
        for dialect in self.dialects:
            recognition = dialect.recognizes(event)
            if recognition > best_recognition:
                best_recognition, best_dialect = recognition, dialect
                if recognition is Recognition.CERTAIN:
                    break
        return best_recognition, best_dialect

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        chosen_dialect: Dialect = state.dialect or self.dialect(event, state)
        return chosen_dialect.map_delta(event, state)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``."""
        chosen_dialect: Dialect = state.dialect or self.dialects[0]
        return chosen_dialect.map_finish_reason(reason, state)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. ``null``, with which llama.cpp announces one more answer, has no counts."""
        chosen_dialect: Dialect | None = state.dialect
        return None if chosen_dialect is None or event is None else chosen_dialect.map_usage(event, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        extensions_hook = getattr(state.dialect, "extensions", None)
        extensions: dict[str, Any] = (
            event if extensions_hook is None or event is None else extensions_hook(event, state)
        )
        return extensions

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``."""
        return self._best(event)[0]


def event_type(event: Any) -> str | None:
    """Return the type of *event*, shortened, or ``None`` if it has none."""
    if isinstance(event, dict):
        for key in ("type", "object", "event_type"):
            word = event.get(key)
            if isinstance(word, str):
                return word[:60]
    return None


def unknown_event(event: Any, cause: str = "an event of an unknown type") -> UnknownEventError:
    """Return the error to raise for the unknown *event*, with its type."""
    word = event_type(event)
    return UnknownEventError(f"{cause} ({word or 'no type'})", event_type=word)


# ------------------------------------------------------------------------------ resolution
# Load the plugins of one provider, and name the distribution of a broken one.


OUR_DISTRIBUTION = "crosswalk-llm"
"""The distribution of the shipped providers. It is not ``crosswalk``, which is an unrelated project on PyPI."""


def is_ours(point: Point) -> bool:
    """Return whether *point* is of Crosswalk itself."""
    return distribution_of(point) == OUR_DISTRIBUTION


def resolved_or_shipped(
    name: str, points: tuple[Point, ...], registered: Iterable[Any], lookup: Callable[[str], Mapper]
) -> Mapper:
    """Return the mapper of *points* and *registered*, without the override of another distribution if that is broken.

    Raises:
        PluginError: as from :func:`resolved`, if the shipped provider is broken, or there is none.
    """
    try:
        return resolved(name, points, registered, lookup)
    except PluginError as error:
        working_points = tuple(
            point for point in points if is_ours(point) or not _is_of(point, error.distribution)
        )
        if len(working_points) == len(points) or not any(map(is_ours, working_points)):
            raise
        warnings.warn(
            f"{error}; it is ignored, and the shipped provider is used", RuntimeWarning, stacklevel=4
        )
        mapper = resolved_or_shipped(name, working_points, registered, lookup)
        return attrs.evolve(mapper, ignored=(*mapper.ignored, str(error.distribution)))


def _is_of(point: Point, distribution: str | None) -> bool:
    return point.dist is not None and point.dist.name == distribution


def resolved(
    name: str, points: Iterable[Point], registered: Iterable[Any], lookup: Callable[[str], Mapper]
) -> Mapper:
    """Return the mapper of the plugins that *points* load and those *registered*, the later before the earlier.

    Args:
        name: the provider id.
        points: the entry points, in order of precedence.
        registered: plugins that a program has registered.
        lookup: returns the mapper of another provider, for a dialect that builds on it.

    Raises:
        PluginError: a plugin cannot be imported or breaks the hookspec. It names the distribution.
    """
    manager = _Manager(PROJECT)
    manager.add_hookspecs(ProviderHooks)
    point: Point | None = None
    sources: dict[int, Point] = {}
    for point in points:
        with _blaming(name, point, "it cannot be imported"):
            plugin = point.load()
        sources[id(plugin)] = point
        _register(manager, name, plugin, point)
    for plugin in registered:
        _register(manager, name, plugin, None)
    if not implements(manager, "map_delta"):
        raise _broken(name, point, "it does not implement map_delta")
    describers = manager.hook.provider_info.get_hookimpls()
    _merge_descriptions(name, [one for one in reversed(describers) if not is_wrapper(one)], sources)
    with _blaming(name, sources.get(id(describers[-1].plugin)) if describers else None, _DESCRIPTION_FAILED):
        return resolve(name, manager, lookup)


def _merge_descriptions(
    name: str, describers: Sequence[pluggy.HookImpl], sources: Mapping[int, Point]
) -> None:
    """Make the first of *describers* return the fields of the others, too, unless it sets them itself."""
    functions = [(one.function, sources.get(id(one.plugin))) for one in describers]

    def merged() -> ProviderInfo | None:
        merged_info: ProviderInfo | None = None
        for function, point in functions:
            with _blaming(name, point, _DESCRIPTION_FAILED):
                info: Any = function()
                check_info(info)
            merged_info = info if merged_info is None or info is None else merged_info.over(info)
        return merged_info

    if len(functions) > 1:
        object.__setattr__(describers[0], "function", merged)  # this provider's own record of it


def _register(manager: pluggy.PluginManager, name: str, plugin: Any, point: Point | None) -> None:
    with _blaming(name, point, "it breaks the hookspec"):
        if manager.is_registered(plugin):
            return  # two entry points, or two calls of register(), may name one object
        # Under a unique name: two plugins may be classes, or modules, of one name.
        manager.register(plugin, f"{name} {len(manager.get_plugins()) + 1}")
        manager.check_pending()
        for caller in manager.get_hookcallers(plugin) or () if isinstance(plugin, type) else ():
            if isinstance(getattr_static(plugin, caller.name), FunctionType):
                raise TypeError(f"{plugin.__name__} is a class: give an object of it")


@contextmanager
def _blaming(name: str, point: Point | None, cause: str) -> Iterator[None]:
    """Raise a :class:`PluginError` for any exception of a plugin: its ``SystemExit`` must not end the program."""
    try:
        yield
    except BaseException as error:
        if is_cancellation(error) or (isinstance(error, PluginError) and error.plugin == name):
            raise
        raise _broken(name, point, f"{cause}: {_shown(error)}") from error


_DESCRIPTION_FAILED: Final = "provider_info failed"


def _broken(name: str, point: Point | None, cause: str) -> PluginError:
    distribution = point.dist.name if point is not None and point.dist is not None else None
    source = f" (from distribution {distribution!r})" if distribution else ""
    # It loads importlib.metadata, which reading answers does not need.
    from crosswalk.version import __version__

    needed_version = None if point is None else unmet_requirement(point, OUR_DISTRIBUTION, __version__)
    if needed_version is not None:
        requirement = f"{OUR_DISTRIBUTION}>={needed_version}"
        cause += f"; it requires {requirement}, and {__version__} is installed: pip install '{requirement}'"
    return PluginError(f"provider {name!r}{source}: {cause}", plugin=name, distribution=distribution)


def _shown(error: BaseException) -> str:
    try:
        cause = " ".join(str(error).split())
    except Exception:  # it is the plugin's own class
        cause = ""
    return f"{type(error).__name__}: {cause[:400]}" if cause else type(error).__name__


class _Manager(pluggy.PluginManager):
    """Skips Python's own names and specifications of unknown hooks, which take most of the time of finding a plugin's
    hooks.

    A method that overrides a hook is one, even without the marker.
    """

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        if name.startswith("__"):
            return None
        attribute = _stored(plugin, name)
        if type(attribute) is FunctionType:  # pluggy takes ten times as long to inspect it
            mark = getattr(attribute, _MARK_ATTRIBUTE, None)
            if mark is not None or name not in HOOKS:
                return mark
        elif name not in HOOKS and not (callable(attribute) or hasattr(type(attribute), "__get__")):
            return None  # plain data
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None and name in HOOKS and callable(getattr(plugin, name)):
            methods = [getattr(kind, name, None) for kind in type(plugin).__mro__]
            marks = (getattr(method, _MARK_ATTRIBUTE, None) for method in methods)
            is_typed = not hasattr(attribute, _SPEC_ATTRIBUTE) and any(
                hasattr(method, _SPEC_ATTRIBUTE) for method in methods
            )
            return next(filter(None, marks), {} if is_typed else None)
        return options

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        return getattr(getattr(module_or_class, name), _SPEC_ATTRIBUTE) if name in HOOKS else None


_MARK_ATTRIBUTE: Final = f"{PROJECT}_impl"
_SPEC_ATTRIBUTE: Final = f"{PROJECT}_spec"


def _stored(plugin: Any, name: str) -> Any:
    """Return the attribute *name* of *plugin* or its class, without evaluating a property. A property if it is unknown."""
    classes = plugin.__mro__ if isinstance(plugin, type) else type(plugin).__mro__
    for namespace in (getattr(plugin, "__dict__", {}), *map(vars, classes)):
        if name in namespace:
            return namespace[name]
    return property()


# -------------------------------------------------------------------------------- registry
# Find providers by name, and keep a broken one from affecting the others.


ENTRY_POINT_GROUP = "crosswalk.providers"
"""The entry-point group in which distributions register providers. The name of an entry is the provider id."""
DISABLED_VARIABLE = "CROSSWALK_DISABLED_PLUGINS"
"""The variable with the provider ids that are never imported, separated by commas.

``vllm@their-package`` is the provider of one distribution.
"""
Signs: TypeAlias = tuple[frozenset[str], ...]
"""Sets of keys, with dots between them in an entry point. An object has a sign if it has all keys of one set."""


_PROVIDER_ID = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_ID_RULE: Final = "it takes letters, digits and . _ or - between them, at most 100"


@attrs.frozen
class ProviderEntry:
    """A provider as it is registered. Creating this imports no part of it.

    Attributes:
        name: the provider id.
        distribution: the installed distribution that ships it, or ``None`` if it was registered in the program.
        version: the version of that distribution, or ``None`` likewise.
        target: the entry point's value, or the registered object.
        blocked: whether it must not be imported.
        overrides: the distributions with plugins of the same name that it overrides, hook by hook.
    """

    name: str
    distribution: str | None
    version: str | None
    target: str
    blocked: bool = False
    overrides: tuple[str, ...] = ()


class Registry:
    """The providers that this program can use.

    Installed providers are found by their entry points, which are read once, when first needed. A provider's
    code is imported when it is first resolved. Safe to use from several threads: a plugin with a slow import
    only delays the threads that request that plugin.

    Args:
        installed: the entry points to offer, or ``None`` for those of the environment.
        environ: the mapping with ``CROSSWALK_DISABLED_PLUGINS``, or ``None`` for the process's environment.
    """

    def __init__(
        self,
        *,
        installed: Iterable[EntryPoint] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        disabled_text = (os.environ if environ is None else environ).get(DISABLED_VARIABLE, "")
        self._blocked_names = {_normal(name.strip()) for name in disabled_text.split(",") if name.strip()}
        self._given_points: list[Point] | None = None if installed is None else list(installed)
        self._installed: dict[str, list[Point]] | None = None
        self._registered_plugins: dict[str, list[Any]] = {}
        self._mappers: dict[str, Mapper] = {}  # looked up without the lock, changed with it
        self._shipped_mappers: dict[str, Mapper] = {}
        self._change_counts: Counter[str] = Counter()  # the number of changes to each name
        # Of all that are not blocked, filled on first request.
        self._signs: Mapping[str, Signs | None] | None = None
        self._origins: dict[str, tuple[bool, bool]] = {}
        self._names_by_origin: tuple[list[str], list[str]] | None = None
        # Never held while a plugin's code is imported or its hooks run: that code may take for ever, or ask here for
        # another provider while a second thread does the reverse. Python itself runs a module's code only once.
        self._lock = threading.RLock()

    def register(self, plugin: Any, name: str) -> None:
        """Add *plugin*, a module or object with hook implementations, as provider *name*.

        If the name exists already, the new hooks come before those of the same name, and the new wrappers around
        them, as in pluggy. Hooks that *plugin* does not have stay unchanged.

        Raises:
            ValueError: *name* is not a provider id: letters, digits and ``.``, ``_`` or ``-`` between them, at most
                100.
        """
        untyped_name: object = name  # the arguments are easily swapped
        if not isinstance(untyped_name, str):
            raise TypeError("register(plugin, name): the name is a string")
        if not _PROVIDER_ID.fullmatch(name):
            raise ValueError(f"not a provider id: {name[:40]!r}; {_ID_RULE}")
        with self._lock:
            self._registered_plugins.setdefault(name, []).append(plugin)
            self._changed(name)

    def unregister(self, plugin: Any, name: str) -> None:
        """Undo a :meth:`register`.

        Raises:
            UnknownProviderError: *plugin* is not registered under *name*.
        """
        with self._lock:
            plugins = self._registered_plugins.get(name, [])
            if plugin not in plugins:
                raise UnknownProviderError(f"provider {name!r}: not registered here", plugin=name)
            plugins.remove(plugin)
            self._changed(name)

    def block(self, name: str) -> None:
        """Never import or resolve provider *name* from now on. ``vllm@their-package`` blocks that of one distribution."""
        with self._lock:
            self._blocked_names.add(_normal(name))
            self._forget(name)

    def unblock(self, name: str) -> None:
        """Undo a :meth:`block`."""
        with self._lock:
            self._blocked_names.discard(_normal(name))
            self._forget(name)

    def _forget(self, name: str) -> None:
        provider, _, distribution = name.partition("@")
        if distribution:
            self._installed = None
        self._changed(provider)

    def _changed(self, name: str) -> None:
        """Drop the mappers of *name* and of providers that speak its dialect, also those that other threads are
        resolving.
        """
        self._signs = None
        self._origins.clear()
        self._names_by_origin = None
        speakers = [other for other, mapper in self._mappers.items() if name in mapper.info.speaks]
        for changed_name in (name, *speakers):
            self._change_counts[changed_name] += 1
            self._mappers.pop(changed_name, None)

    def refresh(self) -> None:
        """Look for installed plugins again, including those that were installed since the program began."""
        with self._lock:
            invalidate_caches()
            self._installed = None
            for name in [*self._mappers]:
                self._changed(name)
            self._signs = None
            self._origins.clear()
            self._names_by_origin = None

    def providers(self) -> list[ProviderEntry]:
        """Return all providers by name, including blocked ones. Imports none of them."""
        with self._lock:
            names = sorted({*self._entry_points(), *(n for n, p in self._registered_plugins.items() if p)})
            return [self._entry(name) for name in names]

    def names(self) -> list[str]:
        """The ids of all providers that are not blocked."""
        return [*self.signs()]

    def signs(self) -> Mapping[str, Signs | None]:
        """Return, for each provider that is not blocked, the sets of keys that every object it is certain of has, by
        name.

        They are declared in its entry points. ``None`` if not: only its code can tell.
        """
        signs_by_name = self._signs
        if signs_by_name is None:
            with self._lock:  # without entries: reading a distribution's metadata is slow
                registered_names = (name for name, plugins in self._registered_plugins.items() if plugins)
                names = sorted({*self._entry_points(), *registered_names} - self._blocked_names)
                signs_by_name = self._signs = {name: self._signs_of(name) for name in names}
        return signs_by_name

    def _signs_of(self, name: str) -> Signs | None:
        points = () if self._registered_plugins.get(name) else self._entry_points().get(name, ())
        extras = [point.value.partition("[")[1:] for point in points]
        if not all(bracket for bracket, _ in extras) or not extras:
            return None
        signs = [sign for _, keys in extras for sign in keys.strip(" ]").replace(",", " ").split()]
        return tuple([frozenset(sign.split(".")) for sign in signs])

    def is_shipped(self, name: str) -> bool:
        """Whether Crosswalk itself ships provider *name*, and it is not blocked."""
        return self._origin(name)[0]

    def is_changed(self, name: str) -> bool:
        """Whether another distribution, or the program, gives hooks for provider *name*."""
        return self._origin(name)[1]

    def _origin(self, name: str) -> tuple[bool, bool]:
        """Whether Crosswalk ships provider *name*, and whether others give hooks for it."""
        origin = self._origins.get(name)
        if origin is None:
            with self._lock:
                are_ours = [is_ours(point) for point in self._entry_points().get(name, ())]
                is_shipped = name not in self._blocked_names and any(are_ours)
                is_changed = bool(self._registered_plugins.get(name)) or not all(are_ours)
                origin = self._origins[name] = is_shipped, is_changed
        return origin

    def names_by_origin(self) -> tuple[list[str], list[str]]:
        """The ids of the providers that Crosswalk ships, and of those for which others give hooks, without blocked ones."""
        grouped_names = self._names_by_origin
        if grouped_names is None:
            with self._lock:
                names = self.names()
                grouped_names = self._names_by_origin = (
                    list(filter(self.is_shipped, names)),
                    [name for name in names if self.is_changed(name)],
                )
        return grouped_names

    def names_of(self, name: str) -> Names:
        """Return what others call provider *name*. A provider that is unknown, blocked or broken says nothing."""
        mapper = self._mappers.get(name)
        if mapper is None and name in self.signs():
            with suppress(PluginError):
                mapper = self.mapper(name)
        return NO_NAMES if mapper is None else mapper.info.names

    def named(self, kind: Literal["vendors", "owners"], word: str) -> str | None:
        """Return the provider of another distribution, or of this program, that says that it is called *word*.

        Crosswalk's own providers are in the tables of those who ask, so that none is imported only for its name.
        """
        names = self.names_by_origin()[1]
        return next((name for name in names if word in getattr(self.names_of(name), kind)), None)

    def shipped(self, name: str) -> Mapper:
        """Return provider *name* as Crosswalk ships it, without overrides of it and of the dialects that it also speaks.

        Raises:
            UnknownProviderError: Crosswalk does not ship it, or it is blocked. PluginError: it cannot be imported.
        """
        if not self.is_shipped(name):
            raise UnknownProviderError(f"provider {name!r} is not shipped", plugin=name, known=self.names())
        return self._shipped_mappers.get(name) or self._shipped_mappers.setdefault(
            name, self._resolve_shipped(name)
        )

    def _resolve_shipped(self, name: str) -> Mapper:
        if not self.is_changed(name):
            mapper = self.mapper(name)
            if not any(map(self.is_changed, (name, *mapper.info.speaks))):  # another thread may have
                return mapper
        points = [point for point in self._entry_points()[name] if is_ours(point)]
        return resolved(name, points, (), self.shipped)

    def mapper(self, name: str) -> Mapper:
        """Return provider *name*, resolved to direct callables. Its code is imported now unless it already was.

        Raises:
            UnknownProviderError: that name is not registered, or it is blocked.
            PluginError: the plugin cannot be imported or breaks the hookspec. If it overrides a provider that Crosswalk
                ships, a ``RuntimeWarning`` is issued instead, and the shipped one is used.
        """
        if not isinstance(name, str):  # a caller may not be typed
            type_name = type(name).__name__
            raise UnknownProviderError(
                f"a provider id is a string, not {type_name}", plugin=type_name, known=self.names()
            )
        return self._mappers.get(name) or self._resolve(name)

    def _resolve(self, name: str) -> Mapper:
        with self._lock:
            change_count = self._change_counts[name]
            is_blocked = name in self._blocked_names
            registered_plugins = tuple(self._registered_plugins.get(name, ()))
            points = tuple(self._entry_points().get(name, ()))
        if is_blocked:
            raise UnknownProviderError(f"provider {name!r} is blocked", plugin=name, known=self.names())
        if not registered_plugins and not points:
            known_names = self.names()
            hint = right_word("a provider", name.lower()) or meant(name, known_names)
            error = UnknownProviderError(
                f"unknown provider {name!r}{hint}; known: {', '.join(known_names) or 'none'}",
                plugin=name,
                known=known_names,
            )
            error.add_note("If its plugin was installed after this program began, call registry.refresh().")
            raise error
        foreign = [*dict.fromkeys(str(distribution_of(point)) for point in points if not is_ours(point))]
        if len(foreign) > 1:
            message = f"provider {name!r} is in several distributions, {', '.join(foreign)}: the last one's hooks come first"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
        mapper = resolved_or_shipped(name, points, registered_plugins, self.mapper)
        if self.is_shipped(name) and self.is_changed(name):
            mapper = attrs.evolve(mapper, shipped=self.shipped(name))
        with self._lock:
            if self._change_counts[name] != change_count:
                return mapper  # right for callers before the change, and for none after it
            return self._mappers.setdefault(name, mapper)

    def _entry_points(self) -> dict[str, list[Point]]:
        if self._installed is None:
            points = installed_points(ENTRY_POINT_GROUP) if self._given_points is None else self._given_points
            self._installed = {}
            for point in points:
                if not _PROVIDER_ID.fullmatch(point.name):
                    owner = distribution_of(point)
                    warnings.warn(
                        f"{owner}: not a provider id: {point.name[:40]!r}", RuntimeWarning, stacklevel=4
                    )
                elif not self._is_blocked(point):
                    self._installed.setdefault(point.name, []).append(point)
            for same_name_points in self._installed.values():
                if len(same_name_points) > 1:
                    same_name_points.sort(key=_precedence)
        return self._installed

    def _is_blocked(self, point: Point) -> bool:
        """Return whether *point* is blocked by ``provider@distribution``. Read its distribution only if needed."""
        blocked_names = [name for name in self._blocked_names if name.startswith(f"{point.name}@")]
        return bool(blocked_names) and f"{point.name}@{distribution_of(point)}" in blocked_names

    def _entry(self, name: str) -> ProviderEntry:
        is_blocked, overridden_points = name in self._blocked_names, self._entry_points().get(name, [])
        if registered := self._registered_plugins.get(name):
            target = getattr(registered[-1], "__name__", type(registered[-1]).__qualname__)
            return ProviderEntry(name, None, None, target, is_blocked, _distributions(overridden_points))
        *overridden_points, point = overridden_points
        overrides, (owner, version) = _distributions(overridden_points), source_of(point)
        return ProviderEntry(
            name, owner, version, point.value.partition("[")[0].strip(), is_blocked, overrides
        )


def _distributions(points: Iterable[Point]) -> tuple[str, ...]:
    return tuple(point.dist.name for point in points if point.dist is not None)


def _precedence(point: Point) -> tuple[bool, str]:
    """Sort Crosswalk's own first, so that another package's plugin of the same name overrides it, and the others by
    name.
    """
    distribution = point.dist.name if point.dist is not None else ""
    return distribution != OUR_DISTRIBUTION, distribution


def _normal(name: str) -> str:
    """Return the provider *name*. In ``vllm@Their_Package`` the distribution is as ``distribution_of`` returns it."""
    provider, separator, distribution = name.partition("@")
    return f"{provider}@{normal_distribution(distribution)}" if separator else name


registry = Registry()
"""The default registry of ``crosswalk.normalize`` and related functions."""


def providers() -> list[ProviderEntry]:
    """Return the installed providers, by name. A broken one has its error."""
    return registry.providers()
