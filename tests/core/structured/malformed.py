"""Answers as models write them, and what the chain makes of each.

A line of the table: a name, the answer, the stage that gives the value, the reason. All are read as
:class:`StructuredResponse`. ``A`` is an ``answer``, ``N`` is an ``items_shown``.
"""

# ruff: noqa: RUF001 - models write such quotes

from __future__ import annotations

from typing import NamedTuple

GOOD = '{"answer": "A", "items_shown": 3}'
MORE = '{"schema_version": "1.0", "answer": "A", "items_shown": 3, "items_total": 18, "count_qualifier": "exact", "sources": [{"title": "ADR.21", "type": "ADR"}]}'


class Case(NamedTuple):
    """One answer."""

    name: str
    text: str
    stage: str
    reason: str = "success"


def _all(stage: str, reason: str, cases: dict[str, str]) -> list[Case]:
    return [Case(name, text, stage, reason) for name, text in cases.items()]


DIRECT = _all(
    "direct",
    "success",
    {
        "plain": GOOD,
        "all fields": MORE,
        "white space around": f" \n\t{GOOD}\r\n ",
        "pretty": '{\n  "answer": "A",\n  "items_shown": 3\n}',
        "minified": '{"answer":"A","items_shown":3}',
        "a key in another case": '{"Answer": "A", "items_shown": 3}',
        "a key with a blank": '{"answer ": "A", "items_shown": 3}',
        "unknown key": '{"answer": "A", "items_shown": 3, "mood": "sunny"}',
        "unknown nested key": '{"answer": "A", "items_shown": 3, "extra": {"a": [1, {"b": null}]}}',
        "null where it may be": '{"answer": "A", "items_shown": 3, "items_total": null, "count_qualifier": null}',
        "braces in a string": '{"answer": "use {x} and [y]", "items_shown": 3}',
        "a fence in a string": '{"answer": "```json\\n{}\\n```", "items_shown": 3}',
        "JSON in a string": '{"answer": "{\\"answer\\": 1}", "items_shown": 3}',
        "escapes": '{"answer": "\\u00e9 \\n \\\\ \\" \\/", "items_shown": 3}',
        "a surrogate pair": '{"answer": "\\ud83e\\udd99", "items_shown": 3}',
        "emoji": '{"answer": "🦙", "items_shown": 3}',
        "smart quotes in a string": '{"answer": "“A”", "items_shown": 3}',
        "an empty answer": '{"answer": "", "items_shown": 0}',
        "equal counts": '{"answer": "A", "items_shown": 3, "items_total": 3}',
        "a large integer": '{"answer": "A", "items_shown": 3, "items_total": 9223372036854775807}',
        "minus zero": '{"answer": "A", "items_shown": -0}',
        "version 1.1": '{"schema_version": "1.1", "answer": "A", "items_shown": 3, "confidence": 0.5, "metadata": {"k": 1}}',
        "an integer for a number": '{"schema_version": "1.1", "answer": "A", "items_shown": 3, "confidence": 1}',
        "version 1.0 does not know confidence": '{"schema_version": "1.0", "answer": "A", "items_shown": 3, "confidence": "high"}',
        "an unknown minor of version 1": '{"schema_version": "1.9", "answer": "A", "items_shown": 3, "novelty": []}',
        "version 2.0": '{"schema_version": "2.0", "response": "A", "items_shown": 3, "citations": [{"title": "ADR.21"}]}',
        "an unknown minor of version 2": '{"schema_version": "2.4", "response": "A", "items_shown": 3, "citations": []}',
        "deep in an unknown key": '{"answer": "A", "items_shown": 3, "deep": ' + "[" * 99 + "]" * 99 + "}",
    },
)

_FENCED = {
    f"a fence labelled {label or 'nothing'!r}": f"```{label}\n{GOOD}\n```"
    for label in ("json", "JSON", "", "javascript", "jsonc", "text", "python", "json5", "{.json}", "c++")
}

EXTRACT = _all(
    "extract",
    "success",
    {
        **_FENCED,
        "tildes": f"~~~json\n{GOOD}\n~~~",
        "a fence in one line": f"```json {GOOD}```",
        "a fence without an end": f"```json\n{GOOD}",
        "a fence in Windows lines": f"```json\r\n{GOOD}\r\n```",
        "an indented fence": f"  ```json\n  {GOOD}\n  ```",
        "four backticks": f"````json\n{GOOD}\n````",
        "a fence in a fence": f"````markdown\n```json\n{GOOD}\n```\n````",
        "single backticks": f"`{GOOD}`",
        "prose before": f"Here is the answer: {GOOD}",
        "prose after": f"{GOOD}\nLet me know if you need more!",
        "prose around": f"Sure!\n\n{GOOD}\n\nAnything else?",
        "prose around a fence": f"Sure:\n```json\n{GOOD}\n```\nDone.",
        "apostrophes around": f"Here's what I've found: {GOOD} It's all.",
        "quotes around": f'The "answer" is {GOOD} as "asked"',
        "a heading": f"# Answer\n\n{GOOD}",
        "a list item": f"- {GOOD}",
        "a quotation": f"> {GOOD}",
        "thinking before": f"<think>The user wants {{counts}}.</think>{GOOD}",
        "a tag around": f"<json>{GOOD}</json>",
        "an assignment": f"const answer = {GOOD};",
        "a call": f"respond({GOOD})",
        "a no-break space": f"\xa0{GOOD}",
        "a zero-width space": f"\u200b{GOOD}",
        "a null character": f"\x00{GOOD}",
        "a closing brace too many": GOOD + "}",
        "a closing bracket too many": GOOD + "]",
        "a semicolon": GOOD + ";",
        "a comma after it": GOOD + ",",
        "a full stop": GOOD + ".",
        "an end token": GOOD + "<|im_end|>",
        "braces in prose before": f"Use {{placeholders}} like {{ this }}. {GOOD}",
        "an empty object before": f"{{}} {GOOD}",
        "a citation before": f"As [1] says: {GOOD}",
        "a link before": f"See [the docs](https://example.org): {GOOD}",
        "a check box before": f"- [x] done\n{GOOD}",
        "another object before": f'{{"note": 1}} {GOOD}',
        "an invalid object before": f'{{"answer": "A", "items_shown": -1}} {GOOD}',
        "a broken object before": f'{{"answer" "A"}} {GOOD}',
        "another object after": f'{GOOD} {{"note": 1}}',
        "lines of JSON": f"{GOOD}\n{GOOD}\n{GOOD}",
        "an example in prose, the answer in a fence": f'I write {{"answer": "…", "items_shown": 0}} so:\n```json\n{GOOD}\n```',
        "two fences, the second right": f'```json\n{{"draft": true}}\n```\n```json\n{GOOD}\n```',
        "a fence of code before": f"```python\nx = {{}}\n```\n```json\n{GOOD}\n```",
        "braces in a string, prose around": 'Here: {"answer": "a } b { c ] d", "items_shown": 3} ok',
        "a fence in a string, in a fence": '```json\n{"answer": "run ```sh\\nls\\n``` now", "items_shown": 3}\n```',
        "an escaped quote before a brace": 'So: {"answer": "he said \\"}\\"", "items_shown": 3} ok',
        "a backslash at the end of a string": 'So: {"answer": "C:\\\\", "items_shown": 3} ok',
        "JSON in a JSON string": '"{\\"answer\\": \\"A\\", \\"items_shown\\": 3}"',
        "a fence in a JSON string": '"```json\\n{\\"answer\\": \\"A\\", \\"items_shown\\": 3}\\n```"',
        "a stray quote before a fence": f'A [5" pipe] costs:\n```json\n{GOOD}\n```',
        "a half object before a fence": f'Use `{{"item: x}}` form:\n```json\n{GOOD}\n```',
        "code before a fence": f"C: `if (a) {{ b: {{` then\n```json\n{GOOD}\n```",
        "a brace in thoughts before a fence": f"<think>{{item: foo</think>\n```json\n{GOOD}\n```",
        "a fence that begins before the answer": f"{GOOD}\n```\nDone.",
        "the label of a fence that begins before it": f"json\n{GOOD}\n```",
        "half the end of a fence": f"```json\n{GOOD}\n``",
        "fences in prose after it": f"So {GOOD} is ```all``` there is.",
        "version 2.0 in prose": 'So: {"schema_version": "2.0", "response": "A", "items_shown": 3, "citations": []}.',
    },
)

REPAIR = _all(
    "repair",
    "success",
    {
        "a trailing comma": '{"answer": "A", "items_shown": 3,}',
        "a trailing comma and a line": '{"answer": "A", "items_shown": 3,\n}',
        "a trailing comma in an array": '{"answer": "A", "items_shown": 3, "sources": [{"title": "T"},]}',
        "trailing commas everywhere": '{"answer": "A", "items_shown": 3, "sources": [{"title": "T",},],}',
        "a leading comma": '{, "answer": "A", "items_shown": 3}',
        "a doubled comma": '{"answer": "A",, "items_shown": 3}',
        "a missing comma": '{"answer": "A" "items_shown": 3}',
        "a missing comma between lines": '{"answer": "A"\n"items_shown": 3}',
        "a missing comma between objects": '{"answer": "A", "items_shown": 3, "sources": [{"title": "T"} {"title": "U"}]}',
        "a missing colon": '{"answer" "A", "items_shown": 3}',
        "single quotes": "{'answer': 'A', 'items_shown': 3}",
        "single quotes and an apostrophe": "{'answer': \"it's\", 'items_shown': 3}",
        "single quotes and braces": "{'answer': 'a } b', 'items_shown': 3}",
        "single quotes around double ones": "{'answer': 'say \"A\"', 'items_shown': 3}",
        "mixed quotes": "{\"answer\": 'A', 'items_shown': 3}",
        "smart quotes": "{“answer”: “A”, “items_shown”: 3}",
        "smart quotes for keys": '{“answer”: "A", “items_shown”: 3}',
        "keys without quotes": '{answer: "A", items_shown: 3}',
        "one key without quotes": '{"answer": "A", items_shown: 3}',
        "Python's words": '{"answer": "A", "items_shown": 3, "items_total": None, "x": True, "y": False}',
        "a Python dict": "{'answer': 'A', 'items_shown': 3, 'items_total': None, 'ok': True}",
        "a Python tuple": '{"answer": "A", "items_shown": 3, "x": (1, 2)}',
        "a comment at the start": '{ // an answer\n"answer": "A", "items_shown": 3}',
        "a code block in a string": '{"answer": "one\n```sh\nls\n```\ntwo", "items_shown": 3}',
        "a line break in a string": '{"answer": "one\ntwo", "items_shown": 3}',
        "a tab in a string": '{"answer": "one\ttwo", "items_shown": 3}',
        "a control character in a string": '{"answer": "one\x07two", "items_shown": 3}',
        "a bad escape": '{"answer": "C:\\path", "items_shown": 3}',
        "a bad hexadecimal escape": '{"answer": "\\x41", "items_shown": 3}',
        "a leading plus": '{"answer": "A", "items_shown": +3}',
        "underscores in a number": '{"answer": "A", "items_shown": 3, "items_total": 1_000}',
        "a bracket for a brace": '{"answer": "A", "items_shown": 3, "sources": [{"title": "T"]}',
        "a missing bracket before a brace": '{"answer": "A", "items_shown": 3, "sources": [{"title": "T"}}',
        "a trailing comma in a fence": '```json\n{"answer": "A", "items_shown": 3,}\n```',
        "single quotes in prose": "Here: {'answer': 'A', 'items_shown': 3} ok",
        "a fence closed before its object": '```json\n{"answer": "A", "items_shown": 3\n```',
        "a line break in a string, in a fence": '```json\n{"answer": "one\ntwo", "items_shown": 3}\n```',
        "invalid JSON before, malformed after": "{\"note\": 1} {'answer': 'A', 'items_shown': 3}",
        "equals signs": '{"answer"= "A", "items_shown"= 3}',
        "single smart quotes": "{‘answer’: ‘A’, ‘items_shown’: 3}",
        "German quotes": "{„answer“: „A“, „items_shown“: 3}",
        "malformed and long": '{"answer": "' + "x" * 2**17 + '", "items_shown": 3,}',
        "quotes in a string": '{"answer": "he said "hi" there", "items_shown": 3}',
    },
)

MISSING = _all(
    "failure",
    "schema_missing_field",
    {
        "an empty object": "{}",
        "no count": '{"answer": "A"}',
        "no answer": '{"items_shown": 3}',
        "wrapped in an object": f'{{"result": {GOOD}}}',
        "wrapped in a fence": f'```json\n{{"result": {GOOD}}}\n```',
        "no count after repair": "{'answer': 'A',}",
        "an empty object in prose": "I found {} nothing.",
        "2.0 without citations": '{"schema_version": "2.0", "response": "A", "items_shown": 3}',
        "2.0 in the words of 1.0": '{"schema_version": "2.0", "answer": "A", "items_shown": 3}',
        "1.0 in the words of 2.0": '{"response": "A", "items_shown": 3, "citations": []}',
        "a missing field and a wrong type": '{"answer": 5}',
        "a JSON Schema": '{"type": "object", "properties": {"answer": {"type": "string"}}}',
        "another object": '{"error": "I cannot do that"}',
    },
)

_WRONG = {
    "answer": ["null", "5", "true", '["A"]', '{"text": "A"}'],
    "items_shown": ["null", '"3"', "3.0", "3.5", "true", "[3]", "3e0"],
    "items_total": ['"18"', "18.0", "false", "[]"],
    "count_qualifier": ["1", "true", "[]"],
    "sources": ["null", '"ADR.21"', "{}", "[1]", '["ADR.21"]', "[null]"],
    "transparency_statement": ["1", "[]"],
    "schema_version": ["1", "1.0", "null", "[]"],
}

WRONG_TYPE = [
    Case(
        f"{key} is {value}",
        '{"answer": "A", "items_shown": 3, "KEY": VALUE}'.replace("KEY", key).replace("VALUE", value)
        if key not in ("answer", "items_shown")
        else GOOD.replace('"A"', value)
        if key == "answer"
        else GOOD.replace("3", value),
        "failure",
        "schema_type_error",
    )
    for key, values in _WRONG.items()
    for value in values
] + _all(
    "failure",
    "schema_type_error",
    {
        "an array": f"[{GOOD}]",
        "an empty array": "[]",
        "an array in a fence": f"```json\n[{GOOD}]\n```",
        "a number": "42",
        "a word": "true",
        "null": "null",
        "a JSON string": '"A"',
        "a citation alone": "As [1] says.",
        "confidence as a word": '{"schema_version": "1.1", "answer": "A", "items_shown": 3, "confidence": "high"}',
        "confidence in an unknown minor": '{"schema_version": "1.5", "answer": "A", "items_shown": 3, "confidence": "high"}',
        "a citation that is text": '{"schema_version": "2.0", "response": "A", "items_shown": 3, "citations": ["ADR.21"]}',
    },
)

BROKEN = _all(
    "failure",
    "invariant_violation",
    {
        "a negative count": '{"answer": "A", "items_shown": -1}',
        "a negative total": '{"answer": "A", "items_shown": 0, "items_total": -5}',
        "fewer in all than shown": '{"answer": "A", "items_shown": 10, "items_total": 5}',
        "an unknown qualifier": '{"answer": "A", "items_shown": 3, "count_qualifier": "roughly"}',
        "a qualifier in capitals": '{"answer": "A", "items_shown": 3, "count_qualifier": "EXACT"}',
        "a broken one in a fence": '```json\n{"answer": "A", "items_shown": -1}\n```',
        "a broken one after repair": "{'answer': 'A', 'items_shown': -1,}",
        "a broken one after a citation": 'As [1] says: {"answer": "A", "items_shown": -1}',
        "too sure": '{"schema_version": "1.1", "answer": "A", "items_shown": 3, "confidence": 1.5}',
        "below nothing": '{"schema_version": "2.0", "response": "A", "items_shown": 3, "citations": [], "confidence": -0.1}',
        "a citation that repeats itself": '{"schema_version": "2.0", "response": "A", "items_shown": 3, "citations": [{"title": "T", "extra": {"title": "U"}}]}',
    },
)

VERSIONS = [
    Case(
        f"version {version!r}",
        f'{{"schema_version": "{version}", "answer": "A", "items_shown": 3}}',
        "failure",
        "schema_unknown_version",
    )
    for version in ("3.0", "0.9", "10.0", "2", "v1.0", "1.0.0", "latest", "", "1.", "01.0", "١.0")
]

NOTHING = _all(
    "failure",
    "extraction_failed",
    {
        "nothing": "",
        "white space": " \n\t ",
        "prose": "I found three documents for you.",
        "not json": "not json",
        "YAML": "answer: A\nitems_shown: 3",
        "members without braces": '"answer": "A", "items_shown": 3',
        "XML": "<answer>A</answer><items_shown>3</items_shown>",
        "a table": "| answer | items |\n|---|---|\n| A | 3 |",
        "braces of prose": "Use {this} and {that thing}.",
        "closing brackets": "}]}",
        "an empty fence": "```json\n```",
        "a NUL": "\x00",
        "half a word": "nul",
        "NaN": "NaN",
        "a number too large": "1e999",
        "a lone surrogate": "\ud83e",
    },
)

CUT = _all(
    "failure",
    "truncated",
    {
        "one brace": "{",
        "one bracket": "[",
        "in a key": '{"ans',
        "after a key": '{"answer"',
        "after a colon": '{"answer":',
        "in a string": '{"items_shown": 3, "answer": "Once upon a ti',
        "in an escape": '{"items_shown": 3, "answer": "one\\',
        "in a number": '{"answer": "A", "items_shown": 3',
        "after a comma": '{"answer": "A", "items_shown": 3,',
        "in a word": '{"answer": "A", "items_shown": 3, "items_total": nu',
        "in an array": '{"answer": "A", "items_shown": 3, "sources": [{"title": "T"},',
        "before the last brace": '{"answer": "A", "items_shown": 3, "sources": []',
        "in a fence": '```json\n{"items_shown": 3, "answer": "Once',
        "after prose": 'Here it is: {"items_shown": 3, "answer": "Once',
        "in single quotes": "{'items_shown': 3, 'answer': 'Once",
        "in an outer object": f'{{"a": {GOOD}, "b": ',
        "in an outer array": f"[{GOOD}, ",
        "an answer in an unfinished string": f'{{"text": "like {GOOD[:1]} that',
        "a whole one of another kind before": '{"note": 1} {"items_shown": 3, "answer": "Once',
        "in a comment": '{"answer": "A", "items_shown": 3 // }',
        "in a fence after an example": f'Form: {GOOD}\n```json\n{{"items_shown": 3, "answer": "Once',
        "before the object of a fence": f"Form: {GOOD}\n```json\n",
        "in the label of a fence": f"Form: {GOOD}\n```js",
        "in the marks of a fence after a stray brace": f"Form: {GOOD}\n<think>{{item: x</think>\n`",
        "in the marks of a fence": f"Form: {GOOD}\n``",
        "after an example that needs repair": f"Form: {GOOD[:-1]},}} {{",
        "in a code block in a string": '{"answer": "one\n```sh\nls\n```\ntwo, and',
        "after many stray brackets": '[5" x\n```\nprose\n' * 20 + GOOD,
        "before a fence that begins before it": '{"answer": "A", "items_shown": 3\n```',
        "in a comment of a block": '{"answer": "A", "items_shown": 3 /* }',
        "a fence closed before its array": '```json\n{"answer": "A", "items_shown": 3, "sources": [{"title": "T"}\n```\nDone.',
        "a comment in the place of a member": '{"answer": "A", /* the { answer */ "items_shown": 3}',
        "comments in a fence": '```jsonc\n{\n  // it\n  "answer": "A",\n  "items_shown": 3,\n}\n```',
        "a whole one before a cut one": GOOD + ' {"answer": "B", "items_sh',
        "an ellipsis": '{"answer": "A", "items_shown": 3, "sources": [{"title": "T"}, ...]}',
        "thoughts without an end": f"<think>{GOOD}",
        "nothing but brackets": "[" * 2000,
        "deep objects": '{"a":' * 2000,
    },
)

HOPELESS = _all(
    "failure",
    "repair_failed",
    {
        "a key without a value": '{"items_shown": 3, "answer": , "x": 1}',
        "a last key without a value": '{"items_shown": 3, "answer": }',
        "two numbers for one": '{"answer": "A", "items_shown": 1 2}',
        "malformed with a number too large": '{"answer": "A", "items_shown": 3, "x": 1e999,}',
        "a word without quotes": '{"answer": A, "items_shown": 3}',
        "a word for a number": '{"answer": "A", "items_shown": three,}',
        "a comment with quotes": '{"answer": "A", // it is "A\n "items_shown": 3}',
        "a comment of a line": '{"answer": "A", // the answer\n "items_shown": 3}',
        "a comment of a block": '{"answer": /* the { answer */ "A", "items_shown": 3}',
        "a comment with a hash": '{"answer": "A", # the answer\n "items_shown": 3}',
        "a comment at the end": '{"answer": "A", "items_shown": 3 // done\n}',
        "a comment": '{"answer": "A", // it is as asked\n "items_shown": 3}',
        "a leading zero": '{"answer": "A", "items_shown": 03}',
        "infinity beside": '{"answer": "A", "items_shown": 3, "x": Infinity}',
        "NaN beside": '{"answer": "A", "items_shown": 3, "x": NaN}',
        "undefined": '{"answer": "A", "items_shown": 3, "x": undefined}',
        "a missing quote before a brace": "{'items_shown': 3, 'answer': 'a}",
        "a missing smart quote before a brace": "{“items_shown”: 3, “answer”: “a}",
        "a missing quote": '{"answer": "A, "items_shown": 3}',
        "unquoted words without end": "{" + ",".join(f"k{n}: v{n}" for n in range(3000)) + "}",
        "malformed with a lone surrogate": '{"answer": "\ud83e", "items_shown": 3,}',
    },
)

SEVERAL = [
    *_all(
        "failure",
        "ambiguous",
        {
            "two answers": f'{GOOD}\n{{"answer": "B", "items_shown": 4}}',
            "a draft and a correction": f'{GOOD} No, wait: {{"answer": "B", "items_shown": 4}}',
            "a correction that cannot be read": f'{GOOD} No, wait: {{"answer": "B", "items_shown": 4 of 5}}',
        },
    ),
    *_all(
        "failure",
        "duplicate_key",
        {
            "a repeated key": '{"answer": "B", "answer": "A", "items_shown": 3}',
            "a repeated key twice the same": '{"answer": "A", "answer": "A", "items_shown": 3}',
            "a repeated key deep inside": '{"answer": "A", "items_shown": 3, "x": {"y": [{"z": 1, "z": 1}]}}',
        },
    ),
]

LIMITS = _all(
    "failure",
    "limit_exceeded",
    {
        "nested too deeply": '{"answer": "A", "items_shown": 3, "deep": ' + "[" * 100 + "]" * 100 + "}",
        "malformed and nested too deeply": '{"answer": "A", "items_shown": 3, "x": '
        + "[" * 3000
        + "]" * 3000
        + ",}",
    },
)

CASES = [
    *DIRECT,
    *EXTRACT,
    *REPAIR,
    *MISSING,
    *WRONG_TYPE,
    *BROKEN,
    *VERSIONS,
    *NOTHING,
    *HOPELESS,
    *CUT,
    *SEVERAL,
    *LIMITS,
]
