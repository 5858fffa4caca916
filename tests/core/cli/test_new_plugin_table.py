"""``crosswalk new-plugin --captures``: the table that it drafts from the recordings of a plain wire."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from beside import CAPTURES, needs_captures
from crosswalk.plugin.registry import Registry
from crosswalk.testing import check_capture, check_pair, load_captures, pairs
from crosswalk.testing.problems import by_cause
from crosswalk.testing.recorded import draft_table

from .conftest import Done

Run = Callable[..., Done]

TALK = b"""{"id":"r1","model":"night-1","created":1767261900,"message":{"role":"assistant","thinking":"Hm.",
"content":"Let me look.","tool_calls":[{"id":"c1","function":{"name":"get_time","arguments":{"zone":"UTC"}}}]},
"finish_reason":"calls_a_tool","usage":{"input_tokens":9,"output_tokens":4},"region":"eu-1","scores":[0.5],"a.b":1}"""
STREAM = b"""{"id":"r2","model":"night-1","created":1767261901,"message":{"role":"assistant","thinking":"Hm."}}
{"id":"r2","message":{"content":"Let me"}}
{"id":"r2","message":{"content":" look."}}
{"id":"r2","finish_reason":"LENGTH","usage":{"input_tokens":9,"output_tokens":4},"region":"eu-1"}
"""
FAILED = b'{"id":"r3","message":{"content":"Let"}}\n{"id":"r3","error":{"message":"overloaded","type":"server_error"}}\n'
OURS = {
    "talk.response.json": TALK,
    "text_stream.response.ndjson": STREAM,
    "failed_stream.response.ndjson": FAILED,
}


@pytest.fixture
def draft(run: Run, tmp_path: Path) -> Callable[[dict[str, bytes]], Path]:
    """Writes the captures and makes the project of a provider from them; returns its module."""

    def make(files: dict[str, bytes]) -> Path:
        (tmp_path / "ours").mkdir()
        for name, content in files.items():
            (tmp_path / "ours" / name).write_bytes(content)
        done = run("new-plugin", "heron", "--captures", "ours")
        assert (done.status, done.err) == (0, "")
        (tmp_path / "said").write_text(done.out)
        return tmp_path / "crosswalk-heron/src/crosswalk_heron/__init__.py"

    return make


def filled(module: Path, **rows: str) -> None:
    """Do what the TODOs of *module* say, as its author would: give *rows* to paths, and their meaning to words."""
    text = module.read_text()
    for path, row in rows.items():
        text, count = re.subn(
            rf'# "{re.escape(path)}": (\.\.\.|FinishReason\.\.\.\.),.*', f'"{path}": {row},', text
        )
        assert count == 1, path
        name = row.partition("(")[0].partition(".")[0]
        if f"    {name},\n" not in text:
            text = text.replace("import (\n", f"import (\n    {name},\n")
    module.write_text(text)


def problems_of(module: Path) -> list[str]:
    """What the kit says of the plugin in *module*."""
    spec = importlib.util.spec_from_file_location("crosswalk_heron", module)
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    registry = Registry(installed=[], environ={})
    registry.register(package.plugin, "heron")
    mapper, captures = registry.mapper("heron"), load_captures(module.parents[2] / "tests/captures")
    problems = [problem for one in captures for problem in check_capture(mapper, one, others=captures)]
    problems += [problem for pair in pairs(captures) for problem in check_pair(mapper, *pair)]
    return [problem.line for problem in by_cause(problems)]


def table_of(module: Path) -> list[str]:
    """The lines of the table and of the finish words in *module*."""
    _, _, table = module.read_text().partition("FieldTable(\n        {\n")
    return [line.strip() for line in table.splitlines() if '"' in line or "TODO" in line]


def test_the_fields_with_standard_names_have_rows_and_the_others_are_listed(
    draft: Callable[[dict[str, bytes]], Path], tmp_path: Path
) -> None:
    module = draft(OURS)
    assert table_of(module) == [
        '"id": ID,',
        '"message.content": TEXT,',
        '"model": MODEL,',
        '"created": CREATED,',
        '"message.role": same("assistant"),',
        '"message.thinking": REASONING,',
        '"finish_reason": FINISH,',
        '"usage.input_tokens": count("prompt_tokens"),',
        '"usage.output_tokens": count("completion_tokens"),',
        '"message.tool_calls": calls(function="function"),',
        "# TODO: a row for each of these that has a place in an answer. The others are kept as sent.",
        '# "region": ...,  # "eu-1"',
        '"LENGTH": FinishReason.LENGTH,',
        "# TODO: what each finish word means.",
        '# "calls_a_tool": FinishReason....,',
    ]
    assert (tmp_path / "said").read_text().splitlines()[-4:] == [
        "a table of 10 rows, and 1 path to look at",
        "next: correct the drafts crosswalk-heron/tests/captures/*.says.json",
        "next: fill in each TODO of crosswalk-heron/src/crosswalk_heron/__init__.py",
        "next: cd crosswalk-heron && pip install -e . && pytest --snapshot-update",
    ]
    assert 'heron = "crosswalk_heron:plugin"' in (tmp_path / "crosswalk-heron/pyproject.toml").read_text()
    assert "listed there as a comment" in (tmp_path / "crosswalk-heron/README.md").read_text()


def test_the_kit_names_what_is_left_to_do_and_nothing_else(
    draft: Callable[[dict[str, bytes]], Path],
) -> None:
    module = draft(OURS)
    (problem,) = problems_of(module)
    assert "talk, as it is: refused: UnknownFinishReasonError" in problem
    assert "'calls_a_tool'" in problem
    filled(module, calls_a_tool="FinishReason.TOOL_CALLS", region='same("eu-1")')
    assert problems_of(module) == []


CHAT = b"""{"id":"c1","object":"chat.completion","created":1767261900,"model":"night-1","choices":[{"index":0,
"message":{"role":"assistant","content":"It is noon."},"finish_reason":"over","mood":"calm"}],
"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"reasoning_tokens":2},"x_night":{"zone":"eu","load":null}}"""
CHAT_STREAM = b"""data: {"id":"c1","created":1767261900,"model":"night-1","choices":[{"index":0,"delta":{"content":"It is"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":" noon."},"finish_reason":"over"}],"x_night":{"zone":"eu"}}

data: [DONE]

"""
CHATS = {"talk.response.json": CHAT, "talk_stream.response.sse": CHAT_STREAM}


@pytest.mark.untraced
def test_chat_completions_get_a_plugin_on_their_class(
    draft: Callable[[dict[str, bytes]], Path], tmp_path: Path
) -> None:
    """With what OpenAI does not write as a comment, and a TODO for each finish word of the server's own."""
    module = draft(CHATS)
    (class_text,) = re.findall(r"(?s)class HeronPlugin.*\n\n\n", module.read_text())
    assert class_text.strip().splitlines() == [
        "class HeronPlugin(OpenAIChatDialect):",
        '    """What differs from OpenAI. Whatever else Heron sends is kept as it was sent."""',
        "",
        '    title = "Heron"',
        '    api = "1.2"',
        '    # TODO: how it is asked, as access = Access.by_name("https://tern.example/v1", "TERN").',
        '    # TODO: what no other server writes, as marks = ("x_tern",). Then its answers are detected.',
        '    reasoning_tokens = (*OpenAIChatDialect.reasoning_tokens, "reasoning_tokens")',
        "    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {",
        "        **OpenAIChatDialect.finish_reasons,",
        "        # TODO: what each finish word means.",
        '        # "over": FinishReason....,',
        "    }",
        "    # TODO: look at these. OpenAI does not write them, and they are kept as sent.",
        '    # "choices[].mood": "calm"',
        '    # "x_night.zone": "eu"',
        '    # "x_night.load": null',
    ]
    assert "Chat Completions, which OpenAIChatDialect reads, and 4 paths to look at" in (
        (tmp_path / "said").read_text()
    )
    assert "It reads Chat Completions" in (tmp_path / "crosswalk-heron/README.md").read_text()
    filled(module, over="FinishReason.STOP")
    assert problems_of(module) == []


def test_plain_chat_completions_need_no_more_than_a_title(draft: Callable[[dict[str, bytes]], Path]) -> None:
    """The recorded paths are the endpoints, and the first one is asked."""
    manifest = b'{"file":"talk.response.json","path":"/api/chat"}\n'
    talk = (
        CHAT.replace(b"over", b"stop")
        .replace(b',"reasoning_tokens":2', b"")
        .replace(b',"mood":"calm"', b"")
        .partition(b',"x_night"')[0]
        + b"}"
    )
    module = draft({"talk.response.json": talk, "MANIFEST.jsonl": manifest})
    assert "from crosswalk.plugins import OpenAIChatDialect\n\n__all__" in module.read_text()
    assert module.read_text().partition("detected.\n")[2] == (
        '    endpoints = ("/api/chat",)\n    style = {"path": "/api/chat"}\n\n\nplugin = HeronPlugin()\n'
    )
    assert problems_of(module) == []
    # Whatever marks its author adds, there are choices beside them.
    assert 'heron = "crosswalk_heron:plugin [choices]"' in (module.parents[2] / "pyproject.toml").read_text()


EVENT = b'data: {"text":"Hi","finish_reason":"stop"}\n\n'
FAILING = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\ndata: {"error":{"message":"full"}}\n\n'
)
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'


@pytest.mark.parametrize(
    ("streams", "declared"),
    [
        ([EVENT + b"data: [DONE]\n\n"], "    sentinel = True\n    fields = FieldTable("),
        ([EVENT + b"data: [DONE]\n\n", EVENT], ""),  # not every stream ends so
        ([EVENT], ""),
        ([CHUNK], "    sentinel = False\n\n\nplugin ="),
        ([CHUNK, CHUNK + b"data: [DONE]\n\n"], "    sentinel = False\n\n\nplugin ="),
        ([CHUNK + b"data: [DONE]\n\n", FAILING], ""),
        ([CHUNK + b"data: [DONE]\n\n"], ""),
    ],
)
def test_the_sentinel_is_declared_as_the_streams_show_it(
    streams: list[bytes], declared: str, draft: Callable[[dict[str, bytes]], Path]
) -> None:
    module = draft({f"talk_{number}_stream.response.sse": body for number, body in enumerate(streams)})
    assert (declared or "plugin = ") in module.read_text()
    assert ("sentinel" in module.read_text()) == bool(declared)
    assert problems_of(module) == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (b'"born":1767261905', '"born"'),
        (b'"at":"2026-01-01T10:05:00.5+01:00","born":1767261905.5,"n":1767261,"say":"2026-01-01T10"', '"at"'),
        (b'"at":{"end":1767261906},"start":1767261905', '"at.end" or "start"'),
        (b'"created":1767261905,"born":1767261905', ""),
        (b'"born":1767261905000', ""),  # no unit of the row
    ],
)
def test_what_may_be_the_time_is_named(
    fields: bytes, named: str, draft: Callable[[dict[str, bytes]], Path]
) -> None:
    module = draft({"talk.response.json": b'{"text":"Hi","finish_reason":"stop",%s}' % fields})
    todo = f"# TODO: is {named} the time of creation? Its row is CREATED. Import it."
    assert (todo in table_of(module)) == bool(named)
    assert ("the time of creation" in module.read_text()) == bool(named)


def test_of_very_many_fields_the_first_are_listed(draft: Callable[[dict[str, bytes]], Path]) -> None:
    odd = ",".join(f'"odd_{number}":{number}' for number in range(50))
    module = draft({"talk.json": CHAT.replace(b'"x_night"', f'{odd},"x_night"'.encode())})
    assert (
        '    # "odd_38": 38\n    # and 13 more, which crosswalk explain shows\n\n\nplugin'
        in module.read_text()
    )


def test_answers_of_two_apis_are_told_apart(
    draft: Callable[[dict[str, bytes]], Path], tmp_path: Path
) -> None:
    """What is most of them is drafted. An answer that only fails is of no API."""
    assert draft_table([CHAT, TALK]).obstacle == (
        "1 of 2 answers are Chat Completions, which OpenAIChatDialect reads "
        "(take each API by itself, and join both with DialectFamily)"
    )
    draft({**CHATS, "other.response.json": TALK, "failed.response.json": b'{"error":"x"}'})
    assert "; 1 answer of another API: join both with DialectFamily\n" in (tmp_path / "said").read_text()
    for other in (
        b'{"choices":"none"}',
        b'{"choices":["Hi"]}',
        b'{"choices":[{"say":"Hi"}]}',
        b"[[]]",
        b'{"error":"x"}',
    ):
        assert not draft_table([other]).is_chat
    azure = b'{"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n{"choices":[{"index":0,"content_filter_offsets":{}}]}\n'
    assert draft_table([azure]).is_chat


def test_of_two_counts_in_one_event_the_one_in_tokens_is_taken_and_both_are_named(
    draft: Callable[[dict[str, bytes]], Path],
) -> None:
    """Such as Cohere's, which bills other numbers than it counts."""
    module = draft(
        {
            "talk.json": b"""{"text":"Hi","finish_reason":"stop","created_at":"2026-01-01T10:05:00Z","usage":{
"billed_units":{"input_tokens":5,"output_tokens":3},"tokens":{"input_tokens":206,"output_tokens":3}}}"""
        }
    )
    assert table_of(module)[2:] == [
        '"created_at": CREATED,',
        '# TODO: this one, or "usage.billed_units.input_tokens"?',
        '"usage.tokens.input_tokens": count("prompt_tokens"),',
        '# TODO: this one, or "usage.billed_units.output_tokens"?',
        '"usage.tokens.output_tokens": count("completion_tokens"),',
        "# TODO: a row for each of these that has a place in an answer. The others are kept as sent.",
        '# "usage.billed_units.input_tokens": ...,  # 5',
        '# "usage.billed_units.output_tokens": ...,  # 3',
        '"stop": FinishReason.STOP,',
    ]


@pytest.mark.parametrize(
    "tool",
    [
        [
            "ruff",
            "check",
            "--select",
            "E,F,I,B,UP,SIM,RUF,C4,PIE,D1,TID",
            "--isolated",
            "--line-length",
            "110",
        ],
        ["ruff", "format", "--check", "--isolated", "--line-length", "110"],
        pytest.param(["mypy", "--strict", "--no-incremental"], marks=pytest.mark.sweep),
    ],
    ids=["ruff", "format", "mypy"],
)
@pytest.mark.parametrize(
    "files",
    [OURS, CHATS, {"talk.json": b'{"say":"%s","$odd":1}' % ("\N{EM DASH}\n" * 20).encode(), "e.json": b'{"' + b"x" * 200 + b'":1}'}],
    ids=["known", "chat", "unknown"],
)  # fmt: skip
def test_the_written_module_is_in_order(
    draft: Callable[[dict[str, bytes]], Path], files: dict[str, bytes], tool: list[str]
) -> None:
    module = draft(
        {
            name: content.replace(b"\n", b"\\n" if "talk.json" in name else b"\n")
            for name, content in files.items()
        }
    )
    done = subprocess.run(
        [sys.executable, "-m", *tool, module.parent],
        cwd=module.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_table_without_a_text_and_an_end_says_so(draft: Callable[[dict[str, bytes]], Path]) -> None:
    module = draft(
        {"talk.json": b'{"say":"Hi","settings":{%s}}' % b",".join(b'"%d":1' % n for n in range(9))}
    )
    assert table_of(module)[:5] == [
        "# TODO: no name is one of a text. Give the text its row, TEXT, and import it.",
        "# TODO: no name is one of a finish word. Give it its row, FINISH, and import it.",
        "# TODO: a row for each of these that has a place in an answer. The others are kept as sent.",
        '# "say": ...,  # "Hi"',
        '# "settings": ...,  # 9 fields',
    ]
    assert "talk, as it is: refused" in problems_of(module)[0]


@pytest.mark.parametrize("name", ["talk.json", "talk_stream.ndjson"])
def test_what_nothing_has_ended_says_what_ends_it(
    draft: Callable[[dict[str, bytes]], Path], name: str
) -> None:
    """A stream may have been cut on its way, a body was not."""
    (problem,) = problems_of(draft({name: b'{"text":"Hi"}\n'}))
    assert "talk" in problem
    assert "no word ended it: give the field with the reason the row FINISH" in problem
    assert ("if the stream was cut on its way" in problem) is ("stream" in name)


def test_the_paths_of_the_recordings_are_the_endpoints(draft: Callable[[dict[str, bytes]], Path]) -> None:
    manifest = b'{"file":"talk.json","path":"/v1/talk?a=b"}\n'
    module = draft({"talk.json": TALK, "MANIFEST.jsonl": manifest})
    assert 'endpoints = ("/v1/talk",)\n' in module.read_text()


def test_a_wire_that_is_not_plain_gets_hooks(
    draft: Callable[[dict[str, bytes]], Path], tmp_path: Path
) -> None:
    module = draft({"talk_stream.ndjson": b'{"type":"begin"}\n{"type":"text"}\n'})
    assert "no table, for the events of a stream have types: begin, text: the mapping" in (
        (tmp_path / "said").read_text()
    )
    assert "def map_delta" in module.read_text()


@pytest.mark.parametrize(
    ("body", "obstacle"),
    [
        (b"\0\1 frames", "an answer is neither JSON nor a stream of it"),
        (b'["Hi"]', "an event is not an object"),
        (
            b'["t", "Hi"]\n["x", "d"]\n',
            "a stream has lines of JSON that are no objects (it needs a framing, and rows by position)",
        ),
        (b"event: a\ndata: {}\n\nevent: b\ndata: {}\n\n", "the events of a stream have types: a, b"),
        (b'{"answers":[{"index":0,"text":"Hi"}]}', "answers[].index numbers the answers"),
        (b'{"text":"H"}\n{"text":"He"}\n{"text":"Hey"}\n', "text holds all of the text so far"),
    ],
)
def test_what_a_table_cannot_read_is_told(body: bytes, obstacle: str) -> None:
    assert draft_table([body]).obstacle == obstacle


def test_a_name_is_believed_only_with_its_type_and_place() -> None:
    """Of two texts in one event the outer one is it. An id of a part is not that of the answer."""
    body = b"""{"text":"Hi","part":{"text":"Hi","id":"p"},"model":7,"output_tokens":"3","parts":[{"text":"a"}],
"a":[[{"text":""}]],"role":"tern","created":"today"}"""
    draft = draft_table([body])
    assert draft.rows == {"text": "TEXT"}
    assert draft.unknown == {
        "part.text": '"Hi"', "part.id": '"p"', "model": "7", "output_tokens": '"3"', "parts[].text": '"a"',
        "role": '"tern"', "created": '"today"',
    }  # fmt: skip
    assert draft_table([b'{"tool_calls":[{"name":"f"}],"deep":[{"tool_calls":[{}]}]}']).rows == {
        "tool_calls": "calls()"
    }
    assert draft_table([b'{"deep":[{"tool_calls":[{"a":1}]}],"tool_calls":["x"]}']).rows == {}


WIRES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "llama": (
        {
            "whole.response.json": "recorded/bedrock-invoke/full/newrelic*meta.llama2*",
            "text_stream.response.ndjson": "recorded/bedrock-invoke/stream/dd-trace*bedrock_meta*",
        },
        {
            "generation": "TEXT",
            "prompt_token_count": 'count("prompt_tokens")',
            "generation_token_count": 'count("completion_tokens")',
        },
    ),
    "mistral": (
        {
            "whole.response.json": "recorded/bedrock-invoke/full/*mistral-ai*",
            "text_stream.response.ndjson": "recorded/bedrock-invoke/stream/*mistral-ai*",
        },
        {
            "amazon-bedrock-invocationMetrics.inputTokenCount": 'count("prompt_tokens")',
            "amazon-bedrock-invocationMetrics.outputTokenCount": 'count("completion_tokens")',
        },
    ),
    "generate": (
        {
            "hello.response.json": "live/ollama-gotemplate/go_gen_hello.response.json",
            "hello_stream.response.ndjson": "live/ollama-gotemplate/go_gen_hello_stream.response.ndjson",
            "think.response.json": "live/ollama-gotemplate/go_gen_think.response.json",
            "think_stream.response.ndjson": "live/ollama-gotemplate/go_gen_think_stream.response.ndjson",
        },
        {},
    ),
}
"""Wires of real servers, by the names that their captures get, with the rows that their author adds."""


@pytest.mark.untraced
@needs_captures
@pytest.mark.parametrize("wire", list(WIRES))
def test_a_stranger_reads_a_real_wire_by_a_table(
    draft: Callable[[dict[str, bytes]], Path], wire: str
) -> None:
    """As it is written, each problem is at a field that is listed; filled in, there is none."""
    files, rows = WIRES[wire]
    module = draft({name: next(CAPTURES.glob(pattern)).read_bytes() for name, pattern in files.items()})
    for problem in problems_of(module):
        assert any(path.partition(".")[0] in problem for path in rows), problem
    filled(module, **rows)
    assert problems_of(module) == []
