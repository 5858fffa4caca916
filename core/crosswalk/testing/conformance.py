"""The conformance kit: a test class that a plugin author subclasses in three lines."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson

try:
    import pytest
    from syrupy.extensions.json import JSONSnapshotExtension
except ImportError as error:
    raise ImportError(f"{error}: the kit needs pip install 'crosswalk-llm[testing]'") from error

from crosswalk.plugin.registry import registry
from crosswalk.testing.captures import Capture, load_captures, pairs
from crosswalk.testing.changes import changes_between, shown
from crosswalk.testing.checks import CHECKS, PROMISES, check_capture, load_exceptions
from crosswalk.testing.evidence import unproven
from crosswalk.testing.pairing import check_pair, normalized
from crosswalk.testing.plugin import CHANGED, UNPROVEN, UNSTATED, written_changes
from crosswalk.testing.problems import KnownException, Problem, by_cause

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from syrupy.location import PyTestLocation
    from syrupy.types import SnapshotIndex


class ProviderConformance:
    """The promises P1 to P5 and P8 for one provider, over a folder of captures.

    ::

        class TestAcme(ProviderConformance):
            provider = "acme"
            captures = "captures/acme"

    Exceptions are listed in the file ``EXCEPTIONS`` in the folder of the captures.

    The kit checks each capture separately. If an exchange was recorded whole and streamed, it also compares both
    forms. A syrupy snapshot, one readable JSON file per capture, pins the result: ``pytest --snapshot-update`` writes the
    snapshots, and a person reads the difference.

    Attributes:
        provider: the provider id.
        captures: the folder, relative to the test's file, see :func:`crosswalk.testing.load_captures`.
        snapshots: the folder of snapshots, relative to the test's file. One folder per provider is made in it.
        sample: the largest number of leaves and cuts to try in a capture, the same ones every time; ``None`` for all.
        write: if the provider has its own framing, a method ``write(data, name)`` that returns the bytes of one frame,
            from an event's data and its name. With it the kit tries the decoder with changed events and broken frames.
    """

    provider: ClassVar[str]
    captures: ClassVar[str]
    snapshots: ClassVar[str] = "snapshots"
    sample: ClassVar[int | None] = 40
    write: ClassVar[Any] = None

    @classmethod
    def conformance_captures(cls) -> list[Capture]:
        """Return the captures to check."""
        return load_captures(cls._folder(cls.captures))

    @classmethod
    @lru_cache(maxsize=2)
    def _all_captures(cls) -> list[Capture]:
        return cls.conformance_captures()

    @classmethod
    def conformance_pairs(cls) -> list[tuple[Capture, Capture]]:
        """Return the captures that were recorded whole and streamed."""
        return pairs(cls.conformance_captures())

    @classmethod
    def _folder(cls, name: str) -> Path:
        return (Path(inspect.getfile(cls)).parent / name).resolve()

    @classmethod
    def _exceptions(cls) -> list[KnownException]:
        return load_exceptions(cls._folder(cls.captures))

    @pytest.mark.parametrize("promise", list(PROMISES))
    def test_promise(
        self,
        conformance_capture: Capture,
        promise: str,
        request: pytest.FixtureRequest,
        record_property: Callable[[str, object], None],
    ) -> None:
        """P1, P3, P4, P5, P8: no promise is broken."""
        if promise == "as stated" and conformance_capture.says is None:
            record_property(UNSTATED, self.provider)
        _fail(self._problems(conformance_capture, self._sample(request), PROMISES[promise]))

    def _problems(self, capture: Capture, sample: int | None, checks: Iterable[str]) -> list[Problem]:
        problems = check_capture(
            registry.mapper(self.provider),
            capture,
            sample=sample,
            checks=checks,
            exceptions=[str(one) for one in self._exceptions()],
            write=self.write,
            others=self._all_captures(),
        )
        return by_cause(problems)

    def _pair_problems(self, pair: tuple[Capture, Capture]) -> list[Problem]:
        exceptions = self._exceptions()
        problems = check_pair(registry.mapper(self.provider), *pair)
        return [one for one in problems if not any(exception.covers(one) for exception in exceptions)]

    def test_body_and_stream_agree(self, conformance_pair: tuple[Capture, Capture]) -> None:
        """P2: one payload is a stream of length one."""
        _fail(self._pair_problems(conformance_pair))

    def test_snapshot(
        self,
        conformance_capture: Capture,
        snapshot: SnapshotAssertion,
        request: pytest.FixtureRequest,
        record_property: Callable[[str, object], None],
    ) -> None:
        """The canonical response equals the one that a person has read and accepted.

        A new one that a statement or a promise contradicts is not written.
        """
        case = conformance_capture.case
        folder = self._folder(self.snapshots) / self.provider
        new_snapshot = normalized(registry.mapper(self.provider), conformance_capture)
        old_snapshot = _stored(folder / f"{case}.json")
        changes = [] if old_snapshot is None else changes_between(old_snapshot, new_snapshot)
        problems = []
        if changes or old_snapshot is None:
            problems = self._problems(conformance_capture, self._sample(request), CHECKS)
            own_pairs = [pair for pair in self.conformance_pairs() if conformance_capture in pair]
            problems += [problem for pair in own_pairs for problem in self._pair_problems(pair)]
        pinned = snapshot.use_extension(_in_folder(folder))
        with warnings.catch_warnings():
            # A snapshot is named after its capture. Syrupy expects the name of the test function.
            warnings.filterwarnings("ignore", message=r"\s*Can not relate snapshot name")
            # Syrupy writes what it is compared with, and removes what no test has asked for.
            compared_snapshot = old_snapshot if problems else new_snapshot
            is_same = compared_snapshot is not None and bool(compared_snapshot == pinned(name=case))
        if changes and not problems:
            record_property(CHANGED, written_changes(self.provider, case, changes))
        lines = [f"{one.place}: {' -> '.join(shown(one))}" for one in changes[:_MOST_LINES]]
        if len(changes) > _MOST_LINES:
            lines.append(f"and {len(changes) - _MOST_LINES} more")
        if old_snapshot is None:
            lines = ["no snapshot yet"]
        lines += [problem.line for problem in problems]
        hint = "mend these first: no snapshot is written over them" if problems else _UPDATE_HINT
        if problems or not is_same:
            pytest.fail("\n".join([*lines, hint]), pytrace=False)

    def test_what_no_capture_shows_is_reported(self, record_property: Callable[[str, object], None]) -> None:
        """It is not a failure: the end of the run lists it."""
        exceptions = map(str, self._exceptions())
        names = unproven(registry.mapper(self.provider), self.conformance_captures(), exceptions)
        record_property(UNPROVEN, f"{self.provider}: {', '.join(names) or 'nothing'}")

    def _sample(self, request: pytest.FixtureRequest) -> int | None:
        sample_option = request.config.getoption("--crosswalk-sample")
        if sample_option is None:
            return self.sample
        return None if sample_option == "all" else int(sample_option)


_MOST_LINES: Final = 20
_UPDATE_HINT: Final = "read this, then run pytest --snapshot-update"


def _fail(problems: list[Problem]) -> None:
    """Fail with *problems*, if there are any, and without the lines of the kit."""
    if problems:
        pytest.fail("\n".join(problem.line for problem in problems), pytrace=False)


def _stored(file: Path) -> Any:
    """Return the snapshot in *file*, or ``None`` if there is none."""
    return orjson.loads(file.read_bytes()) if file.is_file() else None


def _in_folder(folder: Path) -> type[JSONSnapshotExtension]:
    """Return an extension that writes snapshots as plain JSON, one file per capture, in the provider's folder."""

    class Extension(JSONSnapshotExtension):
        def serialize(self, data: Any, **_: Any) -> str:
            return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"

        @classmethod
        def dirname(cls, *, test_location: PyTestLocation) -> str:
            return str(folder)

        @classmethod
        def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
            return Path(snapshot_location).parent == folder

        @classmethod
        def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
            return str(index)

    return Extension
