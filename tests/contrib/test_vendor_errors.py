"""The tables of vendors' errors: each names its sources, and each row works through its plugin."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from crosswalk import ErrorKind, normalize
from crosswalk.plugins import error_info

FILES: Final = sorted(Path(__file__).parents[2].glob("*/crosswalk_*/errors.toml"))
TABLES: Final = {
    name: table for file in FILES for name, table in tomllib.loads(file.read_text("utf-8")).items()
}
KEYS: Final = {"codes", "statuses", "message", "reasons", "kind", "retryable"}
TEXTS: Final = {
    r"^model:": "model: x",
    "input length": "Range of input length should be [1, 30720]",
    r"^the supported api model names are\b": "The supported API model names are a or b, but you passed x.",
    r"^model not found\b": "Model not found: x",
    "^(model is )?overloaded": "Model is overloaded",
    r"^(request failed during |incomplete[ _])?generation\b|^stream[ _](event )?serialization": "Incomplete generation",
    "^(input )?validation|^template[ _]error|^missing[ _]template[ _]va|^tool[ _]error": "Input validation error: no",
    r"\bis not a valid model id\b": "acme/x is not a valid model ID",
    r"\bused all available credits\b|\bmonthly spending limit\b": "Your team has used all available credits.",
}
"""A message of the vendor for each pattern."""


def rows() -> Iterator[tuple[str, dict[str, Any], str | None, int, str | None]]:
    for vendor, table in TABLES.items():
        for row in table["errors"]:
            names = (row.get("codes", [None]), row.get("statuses", [400]), row.get("reasons", [None]))
            for code, status, reason in product(*names):
                yield vendor, row, code, status, reason


def failed(vendor: str, code: str | None, message: str, reason: str | None = None) -> dict[str, Any]:
    match vendor:
        case "gemini" if code is not None and code.isdecimal():
            return {"error": {"code": int(code), "message": message}}
        case "gemini":
            details = [7, {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
            return {"error": {"code": 400, "message": message, "status": code or "X", "details": details}}
        case "minimax":
            return {"base_resp": {"status_code": int(code or 0), "status_msg": message}}
        case "cloudflare":
            return {"success": False, "errors": [{"code": int(code or 0), "message": message}]}
        case "anthropic":
            return {"type": "error", "error": {"type": code, "message": message}}
        case "tgi":
            return {"error": message, "error_type": code}
        case "bedrock":
            return {"message": message, "__type": code}
        case "cohere" if code is not None:  # the finish word of an answer
            return {"id": "a", "message": {"role": "assistant"}, "finish_reason": code, "error": message}
        case "cohere":
            return {"message": message}
        case "ollama":
            return {"error": message}
    return {"error": {"message": message, "code": code}}


@pytest.mark.parametrize("vendor", TABLES)
def test_every_table_names_its_sources_and_a_date(vendor: str) -> None:
    table = TABLES[vendor]
    assert table.keys() == {"sources", "checked", "errors"}
    assert table["sources"]
    assert all(source.startswith("https://") for source in table["sources"])
    assert type(table["checked"]) is date
    for row in table["errors"]:
        assert {"kind"} < row.keys() <= KEYS
        assert ErrorKind(row["kind"])
        assert "message" not in row or re.search(row["message"], TEXTS[row["message"]], re.IGNORECASE)


@pytest.mark.parametrize(("vendor", "row", "code", "status", "reason"), list(rows()))
def test_every_row_decides_the_kind_of_its_error(
    vendor: str, row: dict[str, Any], code: str | None, status: int, reason: str | None
) -> None:
    text = TEXTS[row["message"]] if "message" in row else "No."
    body = failed(vendor, None if code is None else code.replace("*", "Parameter"), text, reason)
    is_answer = vendor == "cohere" and code is not None
    info = normalize(body, vendor, status=200 if is_answer else status).error_info
    assert info is not None
    assert info.kind == row["kind"]
    if "retryable" in row:
        assert info.retryable is row["retryable"]


@pytest.mark.parametrize(
    ("message", "retryable"),
    [
        ("Limit reached on tokens per day (TPD): Limit 10", False),
        ("The weekly limit of this plan is reached", False),
        ("free-models-per-month", False),
        ("Limit reached on tokens per minute (TPM): Limit 10", True),
        ("Too many requests today; the tool 'daily' was called", True),
    ],
)
def test_a_limit_of_a_day_or_more_is_not_worth_a_retry(message: str, retryable: bool) -> None:
    info = error_info(429, {"error": {"message": message}})
    assert (info.kind, info.retryable) == (ErrorKind.RATE_LIMIT, retryable)


@pytest.mark.parametrize(
    "details",
    [
        [7, {"violations": 7}, {"violations": [7, {"quotaId": 7}, {"quotaId": "PerDayNot"}]}],
        [{"violations": [{"quotaId": "RequestsPerDaylight"}]}],
    ],
)
def test_details_of_another_shape_name_no_quota(details: Any) -> None:
    body = {"error": {"code": 429, "message": "No.", "status": "RESOURCE_EXHAUSTED", "details": details}}
    expected = "PerDayNot" in str(details)
    info = error_info(429, [body])
    assert info.retryable is not expected
