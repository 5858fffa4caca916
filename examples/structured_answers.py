"""Read validated values from recorded answers of a model, and show how each was obtained.

    python examples/structured_answers.py ANSWERS.txt

The file holds one answer after the other, with a line of ``---`` between them. Without a file, a few made-up ones
are read.
"""

from __future__ import annotations

import sys
from pathlib import Path

import attrs

from crosswalk.structured import Invariant, ParserMetrics, Schema, StructuredParser, value_to_json

MADE_UP = """\
{"title": "Tea with milk", "minutes": 5, "steps": ["boil", "pour", "wait"]}
---
Here is your recipe:
```json
{"title": "Toast", "minutes": 3, "steps": ["toast"]}
```
Enjoy!
---
{'title': 'Soup', 'minutes': 20, 'steps': ['cook',],}
---
{"title": "Bread", "minutes": 180, "steps": ["mix", "kne
---
{"title": "Ice", "minutes": "60", "steps": []}
---
I cannot cook.
"""


@attrs.frozen
class Recipe:
    """The recipe of a dish.

    Attributes:
        title: its name.
        minutes: the time it takes.
        steps: its steps, in order.
    """

    title: str
    minutes: int
    steps: tuple[str, ...]


RULES: list[Invariant[Recipe]] = [
    Invariant("'minutes' must be > 0", lambda recipe: recipe.minutes > 0),
    Invariant("there must be at least one step", lambda recipe: len(recipe.steps) > 0),
]


def main(arguments: list[str]) -> int:
    """Run from the command line. Return 1 if an answer had no valid value."""
    text = Path(arguments[0]).read_text(encoding="utf-8") if arguments else MADE_UP
    metrics = ParserMetrics()
    parser = StructuredParser(Schema(Recipe, RULES), metrics=metrics)
    for number, answer in enumerate(text.split("\n---\n"), 1):
        result = parser.parse(answer)
        if result.value is not None:
            print(f"{number}. {result.stage}: {value_to_json(result.value).decode()}")
        else:
            print(f"{number}. {result.reason}{''.join(f'; {error}' for error in result.errors)}")
    parses, success_rate = sum(metrics.get_stats()["counters"].values()), metrics.get_success_rate()
    print(f"{parses} answers, {success_rate:.0%} with a value")
    return 0 if success_rate == 1 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
