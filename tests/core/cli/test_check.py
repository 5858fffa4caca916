from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import ResponseDelta
from crosswalk.cli import answers as many, check
from crosswalk.config import Settings
from crosswalk.errors import ConfigurationError
from crosswalk.plugin.registry import registry
from crosswalk.plugins import ProviderInfo, hookimpl
from crosswalk.testing import CHECKS, Corpus, compare_answer, normalized

from .conftest import ROOT, Done, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
OLLAMA = ROOT / "tests/captures/ollama"
write_archive = runpy.run_path(str(ROOT / "scripts/wheel_corpus.py"))["write_archive"]


class Lossy:
    """A provider that forgets everything but the text."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        content = event["message"]["content"]
        return [ResponseDelta(content_delta=content)] if content else []

    @hookimpl
    def extensions(self) -> dict[str, Any]:
        return {}

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Lossy")


@pytest.fixture
def lossy(provider: Callable[[object, str], str]) -> str:
    return provider(Lossy(), "lossy")


@pytest.mark.untraced
def test_a_sound_provider_passes(run: Run) -> None:
    file = OLLAMA / "chat_length.response.json"
    stream = OLLAMA / "chat_length_stream.response.ndjson"
    done = run("check", "--provider", "ollama", file, "--sample", 3, stream)
    assert (done.status, done.err) == (0, "")
    missing, counted = done.out.splitlines()
    assert missing.startswith(f"{OLLAMA}: not recorded: calls, a stream with calls, a second choice, ")
    assert counted.startswith(f"{OLLAMA}: 2 captures, ")
    assert done.out.endswith("; 0 problems\n")


def test_what_is_broken_is_listed(run: Run, lossy: str, captures: Captures) -> None:
    captures("a", line(), path=None)
    done = run("check", "--provider", lossy, "captures", "--sample", "all")
    assert done.status == 1
    assert (
        "captures: P1 a, event 1, model: lost: changing its value changes nothing; "
        "also seen by never silently wrong, text as it was sent [nothing lost: model]\n" in done.out
    )
    assert "captures: 1 capture, 1 event, " in done.out
    assert not done.out.endswith("; 0 problems\n")


@pytest.mark.sweep
def test_pairs_are_compared(run: Run, captures: Captures) -> None:
    captures("a", line("whole"))
    captures("a_stream", line("stre", done=False), line("amed"))
    done = run("check", "--provider", "ollama", "captures")
    assert done.status == 1
    assert "captures: P2 a ~ a_stream: body and stream disagree in message.content" in done.out


def test_other_endpoints_are_skipped_and_counted(run: Run, captures: Captures) -> None:
    captures("a", line())
    captures("b", line(), path="/gateway/api/chat?x=1")
    captures("c", {"models": []}, path="/api/tags")
    done = run("check", "--provider", "ollama", "captures")
    assert done.status == 0
    assert "captures: 2 captures, " in done.out
    assert done.out.endswith("; 1 skipped, which are not endpoints of the provider: /api/tags\n")


def test_several_folders_are_summed_up(run: Run, captures: Captures, lossy: str) -> None:
    inner = captures("a", line(), path=None).parent / "inner"
    inner.mkdir()
    (inner / "b.json").write_bytes(b'{"message": {"content": "x"}}')
    done = run("check", "--provider", lossy, "captures", "--sample", "1")
    tallies = [line for line in done.out.splitlines() if " mappings" in line]
    assert [tally.partition(", ")[0] for tally in tallies] == [
        "captures: 1 capture",
        "captures/inner: 1 capture",
        "in all: 2 captures",
    ]


def test_known_problems_are_listed_and_do_not_count(run: Run, captures: Captures, tmp_path: Path) -> None:
    captures("a", line("whole"))
    captures("a_stream", line("stre", done=False, done_reason=None), line("amed"))
    (tmp_path / "known").write_text(
        """
        # two servers
        body and stream agree: captures/a message.content: the server sampled again
        nothing lost: a: never seen
        nothing lost: elsewhere/a: of another folder
        """
    )
    done = run("check", "--provider", "ollama", "captures", "--exceptions", "known")
    assert done.status == 0
    assert "captures: excepted, the server sampled again: P2 a ~ a_stream: body and stream" in done.out
    assert done.out.endswith("; 0 problems; 1 excepted\n")
    assert done.err.splitlines() == [
        "not needed: the exception 'nothing lost: a'",
        "not needed: the exception 'nothing lost: elsewhere/a'",
    ]


def test_what_the_server_has_not_is_answered_beside_the_captures(run: Run, captures: Captures) -> None:
    captures("a", line("whole"))
    Path("captures/EXCEPTIONS").write_text("not recorded: an image, a refusal: the server has none\n")
    done = run("check", "--provider", "ollama", "captures", "--exceptions", "captures/EXCEPTIONS")
    missing = done.out.splitlines()[0].split(", ")
    assert {"an image", "a refusal"}.isdisjoint(missing)
    assert (done.status, "a cut stream" in missing, done.err) == (0, True, "")


def test_a_capture_may_be_excepted_as_a_whole(run: Run, captures: Captures, lossy: str) -> None:
    captures("a", line(), path=None)
    Path("known").write_text("\n".join(f"{check}: captures/a: it is lossy" for check in CHECKS))
    done = run("check", "--provider", lossy, "captures", "--exceptions", "known")
    assert done.status == 0
    assert "captures: excepted, it is lossy: P1 a, " in done.out


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"nothing lost: a", "known:1: expected 'CHECK: PATH: reason' or 'CHECK: CAPTURE: reason'"),
        (
            b"# x\nnothing: a: why",
            "known:2: an exception is 'CHECK: PATH' or 'CHECK: CAPTURE', with the name of a check, not 'nothing: a'",
        ),
        (b"\xff", "known: not UTF-8"),
    ],
)
def test_a_list_that_cannot_be_read(run: Run, captures: Captures, content: bytes, cause: str) -> None:
    captures("a", line())
    Path("known").write_bytes(content)
    done = run("check", "--provider", "ollama", "captures", "--exceptions", "known")
    assert (done.status, done.err) == (2, f"crosswalk check: {cause}\n")


def test_captures_without_an_event_prove_nothing(run: Run, captures: Captures) -> None:
    """An empty stream is read as it should be, and says nothing of the plugin."""
    captures("a", line())
    Path("empty.json").write_bytes(b"\n")
    assert run("check", "--provider", "ollama", "captures", "empty.json").status == 0
    done = run("check", "--provider", "ollama", "empty.json")
    assert done.status == 2
    assert done.err == "crosswalk check: these captures contain no event, so they do not test the plugin\n"
    captures("a", {"models": []}, path="/api/tags")
    assert "plugin (its endpoints: /api/chat" in run("check", "--provider", "ollama", "captures").err


def test_nothing_to_check_is_status_2(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("check", "--provider", "ollama", "empty").err == "crosswalk check: empty: no captures in it\n"
    assert run("check", "--provider", "ollama", "nowhere").status == 2
    assert run("check", "--provider", "acme", "empty").status == 2
    assert run("check", "--provider", "ollama", "empty", "--exceptions", "nowhere").status == 2


def test_a_capture_that_cannot_be_framed_is_a_problem(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        from crosswalk import LineTooLongError

        raise LineTooLongError("too long", limit=1)

    monkeypatch.setattr(check, "check_capture", refuse)
    captures("a", line())
    done = run("check", "--provider", "ollama", "captures")
    assert done.status == 1
    assert "captures: P4 a: cannot be checked: LineTooLongError: too long" in done.out


def test_several_processes_find_the_same(run: Run) -> None:
    files = [OLLAMA / "chat_length.response.json", OLLAMA / "chat_length_stream.response.ndjson"]
    alone = run("check", "--provider", "ollama", "--sample", 2, *files)
    assert run("check", "--provider", "ollama", "--sample", 2, "--jobs", 2, *files) == alone


def test_a_worker_leaves_ctrl_c_to_its_parent_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import multiprocessing
    import signal
    import threading

    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    before, thresholds = signal.getsignal(signal.SIGINT), gc.get_threshold()
    reader, writer = os.pipe()
    os.close(writer)  # as the system does when a process is killed

    class Parent:
        sentinel = reader

    class Now:
        def __init__(self, target: Callable[..., None], args: tuple[int], daemon: bool) -> None:
            self.start = lambda: target(*args)

    try:
        many._begin(Settings())
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert not ended
        monkeypatch.setattr(multiprocessing, "parent_process", Parent)
        monkeypatch.setattr(threading, "Thread", Now)
        many._begin(Settings())
    finally:
        os.close(reader)
        signal.signal(signal.SIGINT, before)
        gc.set_threshold(*thresholds)
    assert ended == [1]


def test_a_statement_that_a_pattern_names_is_not_taken_for_a_capture(run: Run) -> None:
    done = run("check", "--provider", "ollama", *sorted(OLLAMA.glob("chat_length.*")), "--sample", 1)
    assert (done.status, done.err) == (0, "")
    assert ": 1 capture, " in done.out


# ---------------------------------------------------------------------------------------- the corpus


def test_a_plugin_is_checked_on_the_corpus(run: Run, provider: Callable[[object, str], str]) -> None:
    """With captures, statements and canonical JSON. Those of another provider by its name."""
    done = run("check", "--corpus", "--provider", "xai", "--sample", "1")
    assert (done.status, "xai: 5 captures, " in done.out, "; 0 problems\n" in done.out) == (
        0,
        True,
        True,
    )

    class Shouting(type(registry.mapper("xai").map_delta.__self__)):  # type: ignore[misc]
        finish_reasons: ClassVar[Any] = {"stop": "length"}

    name = provider(Shouting(), "x-shouting")
    done = run("check", "--corpus", "xai", "--provider", name, "--sample", "1")
    assert done.status == 1
    assert "P4 made_empty_finish, as it is: refused: UnknownFinishReasonError" in done.out
    assert "; 3 problems, " in done.out
    assert "metadata.provider_id: " in done.out


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """The canonical JSON of xAI's captures, as another mapper would write it: the response alone, other ids."""
    for capture, canonical in Corpus.installed().load("xai"):
        answer = normalized(registry.mapper("xai"), capture)
        assert answer == canonical
        file = tmp_path / "answers/xai" / f"{capture.case}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(orjson.dumps(answer["response"]))
    return tmp_path / "answers"


def test_the_answers_of_another_mapper_are_compared(run: Run, answers: Path) -> None:
    ask = ("check", "--corpus", "xai", "--answers", "answers")
    assert run(*ask) == Done(0, "5 captures; 0 problems\n", "")
    first, second, third, *_, last = sorted((answers / "xai").iterdir())
    response = orjson.loads(first.read_bytes())
    response["finish_reason"] = "length"
    response["message"]["content"] = "other"
    first.write_bytes(orjson.dumps({"response": response, "deltas": []}))
    second.write_bytes(b"{")
    third.unlink()
    last.write_bytes(b"[]")
    done = run(*ask)
    assert done.status == 1
    case = first.stem
    assert (
        f'xai: P4 {case}, finish: end misread: stated as "tool_calls", and read as "length"; also at finish_reason'
        in done.out
    )
    assert f"xai: P4 {case}, text: text misread: stated as " in done.out
    assert f"xai: P4 {second.stem}, canonical JSON: not JSON: " in done.out
    assert f"xai: P4 {third.stem}, canonical JSON: No such file or directory " in done.out
    assert f"xai: P4 {last.stem}, canonical JSON: is not an object with a response or an error " in done.out
    assert done.out.endswith("5 captures; 5 problems\n")
    assert " of 'acme'" in run("check", "--corpus", "acme", "--answers", "answers").err


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("--provider", "xai", "--corpus", "xai", "x.json"), None),
        (
            ("x.json", "--provider", "xai", "--corpus"),
            "--corpus checks its own captures: leave the paths out",
        ),
        (("--answers", "answers"), "--answers needs --corpus"),
        (("x.json",), "which provider? pass --provider"),
    ],
)
def test_the_corpus_is_asked_for_alone(run: Run, arguments: tuple[str, ...], cause: str | None) -> None:
    done = run("check", *arguments)
    assert done.status == 2
    assert cause is None or done.err == f"crosswalk check: {cause}\n"


def test_an_answer_that_raises_is_compared_by_the_errors_name() -> None:
    """Its words are each mapper's own. So are the ids that it makes up."""
    raising = next(
        (one, canonical) for one, canonical in Corpus.installed().load("vllm") if "error" in canonical
    )
    capture, canonical = raising
    answer = {**canonical, "message": "other words"}
    assert compare_answer(capture, canonical, answer) == []
    assert compare_answer(capture, canonical, {**answer, "error": "ValueError"})
    (problem,) = compare_answer(capture, canonical, {"response": {"message": 7}})
    assert "cannot be read as a response" in str(problem)


def test_an_installation_without_the_corpus_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no corpus"):
        Corpus.installed([tmp_path, tmp_path / "corpus.zip"])


def test_a_corpus_in_an_archive_is_unpacked_once(tmp_path: Path) -> None:
    archive = tmp_path / "corpus.zip"
    write_archive(ROOT, archive)
    corpus = Corpus.installed([archive])
    assert corpus == Corpus.installed([tmp_path, archive]) != Corpus.installed([ROOT])
    captures = corpus.load("xai")
    assert [(one.case, one.body, one.says, answer) for one, answer in captures] == [
        (one.case, one.body, one.says, answer) for one, answer in Corpus.installed([ROOT]).load("xai")
    ]
    again = tmp_path / "again.zip"
    write_archive(ROOT, again)
    assert archive.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06 cut", b"no archive"])
def test_an_archive_that_is_damaged_is_named(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "corpus.zip"
    archive.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"corpus\.zip: cannot be unpacked: ") as caught:
        Corpus.installed([archive])
    assert caught.value.source == str(archive)


def test_what_a_mapper_makes_up_is_not_compared() -> None:
    for capture, canonical in Corpus.installed().load("ollama"):
        response = canonical.get("response", {})
        if response.get("metadata", {}).get("provenance", {}).get("id") == "synthetic":
            other = {**response, "id": "their-own"}
            assert compare_answer(capture, canonical, other) == []
            return
    raise AssertionError("there is one")
