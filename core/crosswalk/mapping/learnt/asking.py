"""What the hooks make of other values than those that came: they are asked, and what they remember of it does not count."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from crosswalk.mapping.learnt.marks import UnlikeError
from crosswalk.mapping.learnt.parts import PROBES
from crosswalk.mapping.learnt.template import Template
from crosswalk.plugin.info import LogprobReader, Path
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.state import MappingState
from crosswalk.plugin.take import NOTED, empty_containers, prune, unnoted
from crosswalk.types.json import load_json
from crosswalk.types.merge import copy_json
from crosswalk.types.metadata import Provenance

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.parts import Make

__all__ = ["counting", "name_their_calls", "replace_each_other", "weighing"]

_REMEMBERED: Final = {"_own", "data", "provenance", "request_duration"}
_NEVER_EQUAL: Final = {"_places"}


def counting(mapper: Mapper, dialect: Any) -> Make:
    """What ``map_usage`` makes of the counts of an event, with nothing else beside them and in any state."""

    def make(part: Any, _: str) -> tuple[Any, Any, bool]:
        again = copy_json(part)
        state, fresh, noted = mapper.new_state(), mapper.new_state(), len(NOTED.values)
        state.dialect = fresh.dialect = dialect
        kept = empty_containers(part)
        usage = mapper.map_usage(part, state)
        prune(part, kept)
        changed = {name for name, was in vars(fresh).items() if vars(state)[name] != was} - _NEVER_EQUAL
        # A report replaces the one before, whatever is remembered of it.
        duration = state.request_duration
        is_same = mapper.map_usage(again, state) == usage and state.request_duration == duration
        if (
            len(NOTED.values) > noted
            or not is_same
            or changed - _REMEMBERED
            or Provenance.ABSENT in state.provenance.values()
        ):
            raise UnlikeError
        return usage if duration is None else (usage, duration), part, bool(changed)

    return make


def weighing(mapper: Mapper, path: Path) -> Make:
    """What the reader of the log probabilities at *path* makes of them."""
    reader: LogprobReader = mapper.info.logprob_leaves[path]

    def make(holder: Any, text: str) -> tuple[Any, Any, bool]:
        noted = len(NOTED.values)
        kept = empty_containers(holder)
        tokens = reader(holder, text)
        prune(holder, kept)
        if len(NOTED.values) > noted:
            raise UnlikeError
        return tokens, holder, False

    return make


def replace_each_other(templates: Sequence[Template], mapper: Mapper, state: MappingState) -> bool:
    """Whether the counts of each of these *templates* replace those of the one before, with all that the hook remembers.

    So it is asked with other counts in a twin of the *state*.
    """
    with unnoted(), suppress(Exception):  # it chokes on a probe, or remembers what cannot be copied
        twin = state.twin()

        def replaces(template: Template, others: Any, expected: Any) -> bool:
            """Whether with *others* the event counts what is *expected*, whatever came before."""
            twin.event_name = template.name
            usage = mapper.map_usage({**load_json(template.frame), **copy_json(others)}, twin)
            return bool(expected == ((usage, twin.request_duration) if type(expected) is tuple else usage))

        counted = [
            (each, [*each.counts.probes, ({}, each.said)]) for each in templates if each.counts is not None
        ]
        order = (0, 1, 0, 2, 0, PROBES)
        return all(replaces(each, *probes[number]) for number in order for each, probes in counted)
    return False


def name_their_calls(templates: Sequence[Template], mapper: Mapper, state: MappingState) -> bool:
    """Whether all *templates* are of one choice and say whose arguments theirs are, whichever call is open.

    And whether the hooks remember nothing of which of them came last. So they are asked with each event after another one's,
    in a state that knows the calls of this *state*.
    """
    import pickle  # only where calls take turns

    named, memories = [], set()
    try:
        with unnoted():
            twin = state.with_calls()
            for each in (*templates, templates[0]):
                twin.event_name = each.name
                deltas = [*(mapper.map_delta(load_json(each.frame), twin) or ())]
                places = [delta.tool_call_delta and delta.tool_call_delta.index for delta in deltas]
                named.append(places == [each.call])
                memories.add(pickle.dumps(twin.memory))
    except Exception:  # it remembers what cannot be copied or compared
        return False
    return all(named) and len(memories) == 1 and len({each.choice for each in templates}) == 1
