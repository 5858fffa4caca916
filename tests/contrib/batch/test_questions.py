"""Ten questions that everybody asks of a log, in natural SQL: the columns give the raw log's own answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from crosswalk import ChatResponse, CrosswalkError, MappingError, ToolCallArgumentsError, normalize
from crosswalk.cli import main
from crosswalk.testing.captures import load_captures
from crosswalk.types import Provenance

ROOT = Path(__file__).parents[3]
PROVIDERS = ("anthropic", "bedrock", "cohere", "gemini", "ollama", "openai", "vllm", "openrouter", "groq")
BEGAN = datetime(2026, 11, 18, 22, tzinfo=UTC)
BROKEN_CALL = {
    "model": "llama3.2",
    "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{oops"}}]},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 3,
    "eval_count": 2,
}  # fmt: skip


class Exchange:
    """A line of the raw log, and what a reader makes of its answer."""

    def __init__(self, line: dict[str, Any]) -> None:
        self.line = line
        self.response: ChatResponse | None = None
        self.partial: ChatResponse | None = None
        try:
            self.response = normalize(line["body"], line["provider"], status=line["status"])
        except CrosswalkError as error:
            self.partial = error.partial if isinstance(error, MappingError) else None

    @property
    def model(self) -> str:
        """The answer's model, else the one that was asked for."""
        answer = self.response or self.partial
        assert answer is not None
        is_absent = answer.metadata.provenance.get("model") is Provenance.ABSENT
        return str(self.line["model"] if is_absent else answer.model)

    @property
    def day(self) -> str:
        return str(self.line["created"][:10])


def log_lines() -> Iterator[dict[str, Any]]:
    """Captures as a gateway would log them, 40 minutes apart."""
    bodies = [("ollama", 200, orjson.dumps(BROKEN_CALL).decode())]
    for provider in PROVIDERS:
        for capture in load_captures(ROOT / "tests" / "captures" / provider)[:24]:
            try:
                bodies.append((provider, capture.status or 200, capture.body.decode()))
            except UnicodeDecodeError:  # Bedrock's binary frames
                continue
    for number, (provider, status, body) in enumerate(bodies):
        began = BEGAN + timedelta(minutes=40 * number)
        yield {
            "id": f"r{number}", "created": began.isoformat().replace("+00:00", "Z"), "provider": provider, "status": status,
            "model": f"{provider}-asked", "duration_seconds": (number * 37 % 101) / 10, "cost": f"0.{number:04}",
            "request": {"prompt": "x" * (number * 13 % 71)}, "body": body,
        }  # fmt: skip


Ask = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Exchange], Ask]:
    """The raw log, and what answers a question about its columns."""
    folder = tmp_path_factory.mktemp("questions")
    lines = list(log_lines())
    (folder / "log.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert main(["batch", str(folder / "log.jsonl"), "--output", str(folder / "out"), "--jobs", "1"]) == 0
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    for kind in ("responses", "rejects"):
        connection.sql(f"CREATE VIEW {kind} AS FROM '{folder}/out/{kind}/*.parquet'")

    def ask(question: str) -> list[Any]:
        return connection.sql(question).fetchall()

    return [Exchange(line) for line in lines], ask


def answers(log: list[Exchange]) -> list[tuple[Exchange, ChatResponse]]:
    return [(one, one.response) for one in log if one.response is not None]


Asked = tuple[list[Exchange], Ask]


@pytest.mark.untraced
def test_tokens_by_model_and_day(asked: Asked) -> None:
    log, ask = asked
    wanted: dict[tuple[str, str], list[int]] = {}
    for one, response in answers(log):
        sums = wanted.setdefault((one.model, one.day), [0, 0])
        sums[0] += response.usage.prompt_tokens
        sums[1] += response.usage.completion_tokens
    found = ask(
        "SELECT model, time::DATE::TEXT, coalesce(sum(usage.prompt_tokens), 0), coalesce(sum(usage.completion_tokens), 0)"
        " FROM responses GROUP BY ALL"
    )
    assert {(model, day): [int(prompt), int(said)] for model, day, prompt, said in found} == wanted
    assert len(wanted) > 20


def test_cost(asked: Asked) -> None:
    log, ask = asked
    ((found,),) = ask("SELECT sum(cost) FROM responses")
    assert found == sum(Decimal(one.line["cost"]) for one, _ in answers(log))


def test_p95_latency(asked: Asked) -> None:
    log, ask = asked
    every = sorted(one.line["duration_seconds"] for one, _ in answers(log))
    ((found,),) = ask("SELECT quantile_disc(latency_seconds, 0.95) FROM responses")
    assert found == every[ceil(0.95 * len(every)) - 1]


def test_tool_calls_with_broken_arguments(asked: Asked) -> None:
    log, ask = asked

    def is_broken(call: Any) -> bool:
        try:
            call.parsed()
        except ToolCallArgumentsError:
            return True
        return False

    wanted = sum(is_broken(call) for _, response in answers(log) for call in response.tool_calls)
    ((found,),) = ask(
        "SELECT count(*) FROM (SELECT unnest(message.tool_calls) AS call FROM responses) WHERE call.kind IS NULL AND NOT json_valid(call.arguments)"
    )
    assert found == wanted > 0


def test_answers_cut_by_length_by_model(asked: Asked) -> None:
    log, ask = asked
    wanted = Counter(one.model for one, response in answers(log) if response.finish_reason == "length")
    assert (
        dict(ask("SELECT model, count(*) FROM responses WHERE finish_reason = 'length' GROUP BY model"))
        == wanted
    )
    assert wanted


def test_streams_that_broke_off_by_model_with_their_tokens(asked: Asked) -> None:
    log, ask = asked
    wanted: Counter[str] = Counter()
    for one in log:
        if one.partial is not None:
            wanted[one.model] += one.partial.usage.prompt_tokens
    found = ask(
        "SELECT partial.model, coalesce(sum(partial.usage.prompt_tokens), 0)::INT FROM rejects WHERE partial IS NOT NULL GROUP BY ALL"
    )
    assert dict(found) == wanted
    assert wanted


def test_refusals(asked: Asked) -> None:
    log, ask = asked
    wanted = [
        one.line["id"]
        for one, response in answers(log)
        if response.refusal and response.finish_reason != "error"
    ]
    assert [
        id for (id,) in ask("SELECT record_id FROM responses WHERE refusal IS NOT NULL ORDER BY time")
    ] == wanted
    assert wanted


def test_share_of_cached_tokens(asked: Asked) -> None:
    log, ask = asked
    with_cache = [response.usage for _, response in answers(log) if response.usage.cached_tokens is not None]
    ((cached, prompts),) = ask(
        "SELECT sum(usage.cached_tokens), sum(usage.prompt_tokens) FROM responses WHERE usage.cached_tokens IS NOT NULL"
    )
    assert int(cached) == sum(usage.cached_tokens or 0 for usage in with_cache) > 0
    assert int(prompts) == sum(usage.prompt_tokens for usage in with_cache)


def test_finish_reasons_by_vendor(asked: Asked) -> None:
    log, ask = asked
    wanted = Counter((one.line["provider"], str(response.finish_reason)) for one, response in answers(log))
    found = ask("SELECT vendor, finish_reason, count(*) FROM responses GROUP BY ALL")
    assert {(vendor, reason): count for vendor, reason, count in found} == wanted


def test_errors_by_kind_model_and_day(asked: Asked) -> None:
    log, ask = asked
    wanted = Counter(
        (str(response.error_info.kind), one.model, one.day)
        for one, response in answers(log)
        if response.error_info is not None
    )
    found = ask(
        "SELECT error_kind, model, time::DATE::TEXT, count(*) FROM responses WHERE error_kind IS NOT NULL GROUP BY ALL"
    )
    assert {(kind, model, day): count for kind, model, day, count in found} == wanted
    assert len(wanted) > 3


def test_longest_prompts(asked: Asked) -> None:
    log, ask = asked
    every = sorted((len(orjson.dumps(one.line["request"])), one.line["id"]) for one, _ in answers(log))
    found = ask(
        "SELECT len(request), record_id FROM responses ORDER BY len(request) DESC, record_id DESC LIMIT 5"
    )
    assert found == every[-5:][::-1]
