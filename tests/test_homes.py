"""The size of the house, and one home for a public class: a reader who looks for its name finds one class."""

from __future__ import annotations

import ast
import json
import re
import runpy
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
COUNT = runpy.run_path(str(ROOT / "scripts/lines.py"))
PLACES = ("core", "contrib/crosswalk_batch", "contrib/crosswalk_observe", "contrib/crosswalk_serve")


def test_a_public_class_has_one_home() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for file in (file for place in PLACES for file in sorted((ROOT / place).rglob("*.py"))):
        for name in re.findall(r"^class ([A-Za-z]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE):
            homes[name].append(file.relative_to(ROOT).as_posix())
    assert len(homes) > 700
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


@pytest.mark.untraced
def test_a_module_is_a_subject_that_can_be_read() -> None:
    modules = [file for top in COUNT["SHIPPED"] for file in sorted((ROOT / top).rglob("*.py"))]
    assert 200 < len(modules) <= 280
    texts = {file.relative_to(ROOT): file.read_text("utf-8") for file in modules}
    counts = {name: COUNT["code_lines"](text) for name, text in texts.items() if text.count("\n") > 700}
    assert {name: count for name, count in counts.items() if count > 700} == {}


# The words of a format.


def _words(value: Any) -> Iterator[str]:
    """Yield the names of fields and the types in *value*."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            if name == "type" and isinstance(member, str):
                yield member
            yield from _words(member)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)


def _own_words(format: str) -> set[str]:
    """Return the words of several parts that only *format* has, of those that the official SDKs let a client say."""
    said: dict[str, set[str]] = {}
    for file in sorted((ROOT / "tests/request_matrix").glob("*.jsonl")):
        bodies = (json.loads(line)["body"] for line in file.read_text("utf-8").splitlines())
        said[file.stem] = {word for body in bodies for word in _words(body) if "_" in word}
    return said[format].difference(*(words for name, words in said.items() if name != format))


def _texts(source: str) -> Iterator[str]:
    """Yield the texts in the code of *source*, without those that stand alone, such as docstrings."""
    tree = ast.parse(source)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


_PATH = re.compile(r"[\w.\[\]=]+")
RESPONSES = (
    "core/crosswalk/responses/",
    "core/crosswalk/formats/respons",
    "contrib/crosswalk_openai_responses/",
)
"""The homes of the Responses API: its types, its format, its plugin."""


@pytest.mark.untraced
def test_words_of_the_responses_api_stand_in_few_other_modules() -> None:
    words = _own_words("responses")
    assert {"shell_call", "input_image", "max_output_tokens"} <= words
    assert not {"tool_choice", "reasoning_effort"} & words
    found = {}
    for module in sorted(file for top in COUNT["SHIPPED"] for file in (ROOT / top).rglob("*.py")):
        source = module.read_text("utf-8")
        if len(words.intersection(re.findall(r"\w+", source))) < 6:
            continue  # most modules, without a look at their code
        texts = (text for text in _texts(source) if _PATH.fullmatch(text))
        own = words.intersection(word for text in texts for word in re.findall(r"\w+", text))
        if len(own) >= 6:
            found[module.relative_to(ROOT).as_posix()] = own
    assert len(found["core/crosswalk/formats/responses_table.py"]) > 40  # it finds them where they are
    assert [name for name in found if not name.startswith(RESPONSES)] == [
        "contrib/crosswalk_openai/lookalikes.py",  # words of answers that Chat Completions has, too
        "core/crosswalk/convert/folding.py",  # items as messages, and back
        "core/crosswalk/wire/responses.py",  # the words of answers
    ]
