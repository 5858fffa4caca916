"""The pytest plugin of the kit.

It runs :class:`ProviderConformance` once for every capture and provides a replay server. At the end of a run it lists
what no capture shows, captures without a statement, and kinds of changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import orjson
import pytest

from crosswalk.codec import ABSENT, Difference

if TYPE_CHECKING:
    from crosswalk.testing.changes import ChangeKind
    from crosswalk.testing.replay import ReplayServer


@pytest.fixture
def replay_server() -> Iterator[ReplayServer]:
    """A running :class:`crosswalk.testing.replay.ReplayServer` without answers, closed after the test."""
    from crosswalk.testing.replay import ReplayServer  # not imported for a project that tests something else

    with ReplayServer() as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the size of the sample."""
    group = parser.getgroup("crosswalk", "checks of provider plugins")
    group.addoption(
        "--crosswalk-sample",
        default=None,
        metavar="N",
        help="leaves and cuts to try per capture, or 'all' (default: what the test class says)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test of a conformance class its captures."""
    # Not imported for a project that tests something else.
    if metafunc.cls is None or "conformance_capture" not in metafunc.fixturenames:
        if metafunc.cls is not None and "conformance_pair" in metafunc.fixturenames:
            pairs = metafunc.cls.conformance_pairs()
            ids = [whole.pair for whole, _ in pairs]
            metafunc.parametrize("conformance_pair", pairs, ids=ids)
        return
    captures = metafunc.cls.conformance_captures()
    metafunc.parametrize("conformance_capture", captures, ids=[str(one.case) for one in captures])


def pytest_configure(config: pytest.Config) -> None:
    """Register the summary at the end of the run."""
    config.pluginmanager.register(Summary(), "crosswalk-summary")


UNSTATED: Final = "crosswalk_unstated"
"""The property of a test whose capture has no statement: the provider id."""
UNPROVEN: Final = "crosswalk_unproven"
"""The property of a test of a provider without recordings of all kinds of answers: the provider id, and these kinds."""
CHANGED: Final = "crosswalk_changed"
"""The property of a test whose snapshot differs: the changes, as :func:`written_changes` writes them."""
CHANGES_FILE: Final = "crosswalk-changes.jsonl"
"""The file in which ``pytest --snapshot-update`` lists the changes that it accepted, in the folder of the run."""
_MOST_KINDS: Final = 20


def written_changes(provider: str, case: str, changes: list[Difference]) -> str:
    """Write *changes* as JSON, which travels as the property of a test."""
    change_objects = [
        {"path": list(one.path)}
        | ({} if one.before is ABSENT else {"before": one.before})
        | ({} if one.after is ABSENT else {"after": one.after})
        for one in changes
    ]
    return orjson.dumps([provider, case, change_objects]).decode()


class Summary:
    """A pytest plugin that counts captures without a statement, and changes of snapshots by their kinds.

    The counts travel as properties of the tests, so that they also arrive from the processes of pytest-xdist.
    """

    def __init__(self) -> None:
        self._unstated_counts: Counter[str] = Counter()
        self._unproven_fields: set[str] = set()
        self._changes_json: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the properties of a finished test."""
        if report.when == "call":
            for name, value in report.user_properties:
                if name == UNSTATED:
                    self._unstated_counts[str(value)] += 1
                elif name == UNPROVEN:
                    self._unproven_fields.add(str(value))
                elif name == CHANGED:
                    self._changes_json.append(str(value))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Write a line for what each provider has no recording of, each kind of change, and captures without a statement.

        If snapshots are updated, the kinds are also written to :data:`CHANGES_FILE`, which replaces an earlier one.
        """
        for text in sorted(self._unproven_fields):
            terminalreporter.write_line(f"crosswalk: not recorded of {text}")
        kinds = self._kinds() if self._changes_json else []
        for line in self._lines(kinds) if kinds else ():
            terminalreporter.write_line(f"crosswalk: {line}")
        if kinds and config.getoption("update_snapshots", False):
            from crosswalk.testing.changes import accepted_lines

            file = config.rootpath / CHANGES_FILE
            file.write_bytes(b"".join(accepted_lines(kinds)))
            terminalreporter.write_line(
                f"crosswalk: accepted, and listed in {file}; crosswalk diff --accept takes it"
            )
        for provider, count in sorted(self._unstated_counts.items()):
            captures_phrase = "1 capture has" if count == 1 else f"{count} captures have"
            terminalreporter.write_line(
                f"crosswalk: {provider}: {captures_phrase} no statement (CASE.says.json)"
            )

    def _kinds(self) -> list[ChangeKind]:
        """Return the kinds of changes, as ``crosswalk diff --summary`` shows them."""
        from crosswalk.testing.changes import ChangeSummary as Kinds

        summary = Kinds()
        for changes_json in self._changes_json:
            provider, case, change_objects = orjson.loads(changes_json)
            differences = [
                Difference(tuple(one["path"]), one.get("before", ABSENT), one.get("after", ABSENT))
                for one in change_objects
            ]
            summary.add(differences, provider, case)
        return summary.kinds()

    def _lines(self, kinds: list[ChangeKind]) -> list[str]:
        more_lines = [f"and {len(kinds) - _MOST_KINDS} more kinds"] if len(kinds) > _MOST_KINDS else []
        snapshots_phrase = (
            "1 snapshot" if len(self._changes_json) == 1 else f"{len(self._changes_json)} snapshots"
        )
        return [f"{snapshots_phrase} changed", *map(str, kinds[:_MOST_KINDS]), *more_lines]
