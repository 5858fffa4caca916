"""``crosswalk check``: the conformance kit, on any plugin and any captures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import orjson

from crosswalk.cli.answers import pool
from crosswalk.cli.arguments import CAPTURES_HELP, add_jobs, add_paths, whole_number
from crosswalk.cli.crosswalks import endpoint_of
from crosswalk.cli.inputs import find_captures, read_capture
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import FAILED, OK, Progress, UsageError, harmless, say, write_text
from crosswalk.config import Settings
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.plugin.registry import Mapper, registry
from crosswalk.testing.captures import Capture, pairs
from crosswalk.testing.case import Tally
from crosswalk.testing.checks import CHECKS, check_capture, load_exceptions
from crosswalk.testing.corpus import Corpus, compare_answer
from crosswalk.testing.evidence import unproven
from crosswalk.testing.pairing import check_pair, normalized
from crosswalk.testing.problems import KnownException, Problem, by_cause, read_exceptions
from crosswalk.text import counted


def _sample(text: str) -> int | None:
    return None if text == "all" else whole_number(text)


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Run the conformance kit over captures: nothing lost, framing does not matter, never
            silently wrong, deterministic, nothing invented, and body and stream of one exchange agree. {CAPTURES_HELP}
            Captures of other endpoints than the provider's are skipped and counted.""",
        epilog="Exit status: 0 nothing is broken, 1 something is, 2 nothing could be tried.",
        examples=("crosswalk check --provider ollama captures/",),
    )
    add_paths(parser, "captures, or folders of them")
    parser.add_argument("--provider", metavar="NAME", help="the provider id")
    parser.add_argument(
        "--corpus",
        nargs="?",
        const="",
        metavar="NAME",
        help="check the captures, statements and canonical JSON that come with Crosswalk; those of NAME, if given",
    )
    parser.add_argument(
        "--answers",
        metavar="FOLDER",
        help="with --corpus: check what another mapper wrote, canonical JSON in FOLDER/NAME/CASE.json",
    )
    parser.add_argument(
        "--sample",
        type=_sample,
        default=40,
        metavar="N|all",
        help="leaves and cuts to try per capture, the same ones every time (default: 40)",
    )
    parser.add_argument(
        "--exceptions",
        metavar="FILE",
        help="problems that do not count, a line each: 'CHECK: PATH: reason' or 'CHECK: CAPTURE: reason'; "
        "the brackets behind a problem show the first two",
    )
    add_jobs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check every capture and every pair, and write the problems, with a total after each folder.

    Raises:
        UsageError: there are no captures, or they have no event, or the list of known problems cannot be read.
        PluginError: the provider cannot be used.
    """
    if arguments.answers is not None:
        return _check_answers(arguments)
    if arguments.provider is None:
        raise UsageError("which provider? pass --provider")
    mapper = registry.mapper(arguments.provider)
    canonical_answers: dict[Path, Any] = {}
    if arguments.corpus is None:
        files = find_captures(arguments.paths)
    else:
        corpus_answers = _corpus_of(arguments).load(arguments.corpus or arguments.provider)
        canonical_answers = {capture.file: answer for capture, answer in corpus_answers}
        files = [*canonical_answers]
    known_exceptions = _known_exceptions(arguments.exceptions, files)
    files_by_folder = [
        (folder, list(folder_files)) for folder, folder_files in groupby(files, key=lambda file: file.parent)
    ]
    total_report = _Report()
    with (
        Progress("checking", len(files)) as progress,
        _mapping(arguments.jobs, arguments.settings) as map_tasks,
    ):
        for folder, folder_files in files_by_folder:
            report = _Report()
            label = folder if arguments.corpus is None else Path("corpus", folder.name)
            captures = _captures(folder_files, mapper, report)
            missing = unproven(mapper, captures, map(str, known_exceptions))
            _write(f"{label}: not recorded: {', '.join(missing) or 'nothing'}")
            tasks = _tasks(captures, mapper, arguments.sample, canonical_answers)
            for task, outcome in zip(tasks, map_tasks(_perform, tasks), strict=True):
                report.add(label, outcome, known_exceptions)
                progress.advance(len(task.captures) % 2)  # a pair was counted already
            _write(f"{label}: {report}")
            total_report.include(report)
    if len(files_by_folder) > 1:
        _write(f"in all: {total_report}")
    for problem in known_exceptions:
        if arguments.exceptions and not (problem.is_used or problem.check == "not recorded"):
            say(f"not needed: the exception '{problem}'")
    if total_report.problems:
        return FAILED
    if not total_report.tally.events:
        hint = f" (its endpoints: {', '.join(mapper.endpoints())})" if total_report.skipped else ""
        raise UsageError(f"these captures contain no event, so they do not test the plugin{hint}")
    return OK


def _corpus_of(arguments: argparse.Namespace) -> Corpus:
    if arguments.paths:
        raise UsageError("--corpus checks its own captures: leave the paths out")
    return Corpus.installed()


def _check_answers(arguments: argparse.Namespace) -> int:
    """Compare the canonical JSON that another mapper wrote with the corpus."""
    if arguments.corpus is None:
        raise UsageError("--answers needs --corpus")
    corpus = _corpus_of(arguments)
    names = [arguments.corpus] if arguments.corpus else corpus.providers()
    report = _Report()
    for name in names:
        for capture, canonical in corpus.load(name):
            file = Path(arguments.answers) / name / f"{capture.case}.json"
            try:
                problems = compare_answer(capture, canonical, orjson.loads(file.read_bytes()))
            except (OSError, orjson.JSONDecodeError) as error:
                cause = error.strerror if isinstance(error, OSError) else f"not JSON: {error}"
                place = f"{capture.case}, canonical JSON"
                problems = [Problem("P4", place, str(cause), "canonical JSON", "", capture.case)]
            report.add(Path(name), (problems, Tally(captures=1)), [])
    _write(f"{counted(report.tally.captures, 'capture')}; {report.causes}")
    return FAILED if report.problems else OK


def _known_exceptions(file: str | None, captures: Iterable[Path]) -> list[KnownException]:
    """The exceptions in *file*, and those that lie beside *captures*."""
    try:
        exceptions = [] if file is None else read_exceptions(Path(file), CHECKS)
        for folder in dict.fromkeys(capture.parent for capture in captures):
            exceptions += load_exceptions(folder)
    except ConfigurationError as error:
        raise UsageError(str(error)) from None
    return exceptions


def _write(line: str) -> None:
    write_text(harmless(line) + "\n")


@attrs.frozen
class _Task:
    """A capture to check, or a pair."""

    provider: str
    sample: int | None
    captures: tuple[Capture, ...]
    folder: tuple[Path, ...] = ()
    canonical: Any = None


@lru_cache(maxsize=2)
def _loaded(files: tuple[Path, ...]) -> list[Capture]:
    return [read_capture(str(file)) for file in files]


_Outcome: TypeAlias = tuple[list[Problem], Tally]
_Each: TypeAlias = Callable[[Callable[[_Task], _Outcome], Iterable[_Task]], Iterable[_Outcome]]


def _perform(task: _Task) -> _Outcome:
    """Check *task*, possibly in another process."""
    mapper, tally = registry.mapper(task.provider), Tally()
    try:
        if len(task.captures) == 1:
            (capture,) = task.captures
            problems = check_capture(
                mapper, capture, sample=task.sample, tally=tally, others=_loaded(task.folder)
            )
            if task.canonical is not None:
                problems += compare_answer(capture, task.canonical, normalized(mapper, capture))
            return problems, tally
        return check_pair(mapper, *task.captures), tally
    except CrosswalkError as error:
        case = task.captures[0].case
        cause = f"cannot be checked: {type(error).__name__}: {error}"
        return [Problem("P4", case, cause, check="never silently wrong", case=case)], tally


@contextmanager
def _mapping(jobs: int, settings: Settings) -> Iterator[_Each]:
    """A function that performs tasks in order, in *jobs* processes."""
    if jobs == 1:
        yield map
        return
    with pool(jobs, settings) as executor:
        yield executor.map


def _captures(files: list[Path], mapper: Mapper, report: _Report) -> list[Capture]:
    """The captures of one folder. *report* gets those that are left out."""
    captures = []
    endpoints = mapper.endpoints()
    for file in files:
        capture = read_capture(str(file))
        if capture.path is not None and endpoints and endpoint_of(capture, endpoints) is None:
            report.skipped.append(str(capture.path))
        else:
            captures.append(capture)
    return captures


def _tasks(
    captures: list[Capture], mapper: Mapper, sample: int | None, canonical_answers: Mapping[Path, Any]
) -> list[_Task]:
    folder_files = tuple(one.file for one in captures)
    tasks = [
        _Task(mapper.provider, sample, (one,), folder_files, canonical_answers.get(one.file))
        for one in captures
    ]
    return tasks + [_Task(mapper.provider, sample, pair) for pair in pairs(captures)]


@attrs.define
class _Report:
    """The result of checking a folder."""

    tally: Tally = attrs.field(factory=Tally)
    problems: int = 0
    excepted: int = 0
    skipped: list[str] = attrs.field(factory=list)
    _causes: dict[tuple[object, ...], Problem] = attrs.field(factory=dict)
    _repeats: int = 0

    def add(self, folder: Path, outcome: _Outcome, known_exceptions: list[KnownException]) -> None:
        """Count *outcome* and write its problems, each cause once."""
        problems, tally = outcome
        self.tally.add(tally)
        remaining_problems: list[Problem] = []
        for problem in problems:
            exception = next(
                (one for one in known_exceptions if one.covers(problem, folder.as_posix())), None
            )
            if exception is None:
                remaining_problems.append(problem)
            else:
                self.excepted += 1
                exception.is_used = True
                _write(f"{folder}: excepted, {exception.reason}: {problem}")
        earlier_problems = [*self._causes.values()]
        for problem in by_cause(remaining_problems):
            every = (problem, *problem.others)
            if any(one.has_cause_of(earlier) for one in every for earlier in earlier_problems):
                self._repeats += 1
            else:
                self.problems += 1
                _write(f"{folder}: {problem.line}")
            self._causes |= {one.cause: one for one in every}

    def include(self, other: _Report) -> None:
        """Add the counts of another folder."""
        self.tally.add(other.tally)
        self.problems += other.problems
        self.excepted += other.excepted
        self.skipped += other.skipped

    @property
    def causes(self) -> str:
        """The number of problems, one for each cause."""
        return counted(self.problems, "problem") + (
            f", {self._repeats} times more in other captures" if self._repeats else ""
        )

    def __str__(self) -> str:
        parts = [str(self.tally), self.causes]
        if self.excepted:
            parts.append(f"{self.excepted} excepted")
        if self.skipped:
            paths = ", ".join(sorted(set(self.skipped)))
            parts.append(f"{len(self.skipped)} skipped, which are not endpoints of the provider: {paths}")
        return "; ".join(parts)
