"""Which provider a payload of unknown origin comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from crosswalk.errors import DetectionError, FramingError, PluginError
from crosswalk.plugin.info import Recognition
from crosswalk.plugin.mapper import Mapper, is_cancellation
from crosswalk.plugin.registry import Registry
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import is_done
from crosswalk.wire.limits import DEFAULT, Limits
from crosswalk.wire.sniff import SniffingDecoder

__all__ = ["LOOKED_AT", "ask", "candidates", "decode_events", "detect", "fault_of", "nameable"]

LOOKED_AT = 50
"""A stream tells its origin early, or not at all."""


def candidates(
    events: Iterable[Any],
    registry: Registry,
    faults: list[PluginError] | None = None,
    asked: dict[str, tuple[Mapper, Recognition]] | None = None,
) -> dict[str, Recognition]:
    """The providers that recognize *events*, and how well: the best of the first fifty events.

    One whose server speaks a dialect that another provider recognizes is possible too, and no more than that.
    Imports every provider that is not blocked; a broken one is passed over, and where it answers what is no
    :class:`Recognition`, that is added to *faults*. Those that were *asked* before are not asked again.
    """
    answers = {} if asked is None else asked
    _ask(
        registry.names(), list(islice(events, LOOKED_AT)), registry, answers, [] if faults is None else faults
    )
    found: dict[str, Recognition]
    found = {name: best for name, (_, best) in answers.items() if best is not Recognition.NO}
    spoken = {
        name for name, (mapper, _) in answers.items() if not found.keys().isdisjoint(mapper.info.speaks)
    }
    return {**found, **dict.fromkeys(spoken - found.keys(), Recognition.POSSIBLE)}


def _certain(
    events: list[Any],
    registry: Registry,
    faults: list[PluginError],
    asked: dict[str, tuple[Mapper, Recognition]],
) -> dict[str, Recognition]:
    """The providers that are certain of *events*; imports none whose signs they do not bear."""
    if not all(type(event) is dict for event in events):
        return {}  # signs are keys
    keys = {key for event in events for key in event}
    signs = registry.signs()
    borne = [name for name, some in signs.items() if some is None or any(sign <= keys for sign in some)]
    _ask(borne, events, registry, asked, faults)
    return {name: best for name, (_, best) in asked.items() if best is Recognition.CERTAIN}


def _ask(
    names: Iterable[str],
    events: list[Any],
    registry: Registry,
    asked: dict[str, tuple[Mapper, Recognition]],
    faults: list[PluginError],
) -> None:
    """Put into *asked* how well the providers *names* recognize the best of *events*; a broken one is passed over."""
    for name in names:
        if name in asked:
            continue
        try:
            mapper = registry.mapper(name)
        except PluginError:
            continue
        best = Recognition.NO
        try:
            for event in events:
                found = ask(mapper.recognizes, event)
                best = found if found > best else best
        except PluginError as error:
            best = Recognition.NO
            faults.append(error)
        asked[name] = mapper, best


def ask(recognizes: Callable[[Any], Recognition | None], event: Any) -> Recognition:
    """How well a provider fits *event*, as its hook *recognizes* says; one that fails does not fit.

    Raises:
        PluginError: the hook answers what is no :class:`Recognition`.
    """
    try:
        return recognizes(event) or Recognition.NO
    except BaseException as error:  # a stranger's code on a payload that need not be his
        if is_cancellation(error) or isinstance(error, PluginError):
            raise
        return Recognition.NO


def detect(events: bytes | Iterable[Any], registry: Registry, *, among: Iterable[str] | None = None) -> str:
    """The one provider that recognizes *events* best.

    Args:
        events: the decoded events of an answer, or its bytes, of which the beginning is enough.
        registry: where to look up the providers.
        among: the ids of those that it may be; ``None`` for all.

    Raises:
        DetectionError: none does, or several do equally; it lists them.
        PluginError: none does, and one has answered what is no :class:`Recognition`.
    """
    decoded = decode_events(events, DEFAULT) if isinstance(events, bytes) else events
    looked_at = list(islice(decoded, LOOKED_AT))
    faults: list[PluginError] = []
    # Who is certain counts for more than all others: they need not be imported.
    wanted = None if among is None else frozenset(among)
    asked: dict[str, tuple[Mapper, Recognition]] = {}
    found = _of(wanted, _certain(looked_at, registry, faults, asked))
    found = found or _of(wanted, candidates(looked_at, registry, faults, asked))
    best = max(found.values(), default=Recognition.NO)
    names = sorted(name for name, how in found.items() if how is best)
    if len(names) == 1:
        return names[0]
    if not names:
        for fault in sorted(faults, key=lambda fault: str(fault.plugin)):
            raise fault
        known, broken = sorted(asked), [name for name in registry.names() if name not in asked]
        raise DetectionError(
            f"no provider recognizes this payload; name one of: {nameable(known, broken)}",
            known=known,
            broken=broken,
        )
    raise DetectionError(
        f"several providers speak this dialect; name one of: {', '.join(names)}", candidates=names
    )


def nameable(known: Iterable[str], broken: Iterable[str]) -> str:
    """The ids of providers, to be told to a user; those that cannot be used are told apart."""
    names, useless = ", ".join(known) or "none", ", ".join(broken)
    return f"{names} (broken: {useless})" if useless else names


def _of(wanted: frozenset[str] | None, found: dict[str, Recognition]) -> dict[str, Recognition]:
    return found if wanted is None else {name: how for name, how in found.items() if name in wanted}


def decode_events(data: bytes, limits: Limits) -> Iterator[Any]:
    """The decoded events of a whole recorded answer, one by one, up to the first that is no JSON."""
    with suppress(FramingError):  # detection works with what there is; reading will name the fault
        yield from _events(data, limits)


def fault_of(data: bytes, limits: Limits) -> FramingError | None:
    """Why no more events of a recorded answer can be decoded; ``None`` where all can."""
    try:
        for _ in _events(data, limits):
            pass
    except FramingError as error:
        return error
    return None


def _events(data: bytes, limits: Limits) -> Iterator[Any]:
    decoder = SniffingDecoder(limits)
    for frame, _ in (*decoder.decode(data), *decoder.flush()):
        if frame and not is_done(frame):
            yield load_event(frame, limits, halves="mend")
