"""Builds the documentation site: ``python scripts/site_pages.py [--serve]``. Any warning is an error.

The pages of ``docs/`` link each other, the examples and the files at the top, so that they work in every view of the
repository. This script arranges them below ``build/site/`` as the site needs them, together with the reference.
Zensical makes HTML of it in ``build/site/html/``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from reference import FACES, reference_pages

__all__ = ["pages", "stage"]

ROOT = Path(__file__).parents[1]
STAGE = ROOT / "build/site"
SETTINGS = """\
[project]
site_name = "Crosswalk"
site_description = "Any LLM server's answer as one canonical response, without losing a field."
docs_dir = "pages"
site_dir = "html"
nav = %s

[project.theme]
font = false
features = [
    "content.code.copy", "navigation.footer", "navigation.indexes", "navigation.tabs", "navigation.top",
    "search.highlight", "toc.follow",
]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"

[project.markdown_extensions]
admonition = {}
attr_list = {}
tables = {}

[project.markdown_extensions.toc]
permalink = true
toc_depth = 3
slugify = { object = "pymdownx.slugs.slugify", kwds = { case = "lower" } }

[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
"""


def pages() -> dict[str, str]:
    """Return the text of every page of the site by its path."""
    places = {
        file: file.relative_to(ROOT / "docs").as_posix() for file in sorted((ROOT / "docs").rglob("*.md"))
    }
    places[ROOT / "docs/index.md"] = "contents.md"
    places |= {
        ROOT / f"{name}.md": f"{name.lower()}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")
    }
    places |= {ROOT / "README.md": "index.md"}
    places |= {
        file: f"{file.relative_to(ROOT).with_suffix('').as_posix()}.md".replace("README.md", "index.md")
        for file in [
            *sorted((ROOT / "examples").glob("*.py")),
            ROOT / "examples/README.md",
            *sorted((ROOT / "examples").glob("*/README.md")),
            ROOT / "contrib/observability/README.md",
        ]
    }
    found = {place: _linked(_text(file), file, places) for file, place in places.items()}
    for heading, said in ONLY_HERE.items():
        found["contents.md"] = found["contents.md"].replace(heading, said, 1)
    return found | {f"reference/{name}": text for name, text in reference_pages().items()}


MATRIX = "crosswalk.html"
"""The page of all providers that ``crosswalk table --html`` writes."""
ONLY_HERE = {
    "## Start\n": "Every public name, from A to Z: the [API reference](reference/index.md).\n\n## Start\n",
    "## Providers\n": f"## Providers\n\n[The crosswalk]({MATRIX}) shows all of them side by side: each canonical field, "
    "which provider says it, in which place of the wire, with a real example.\n",
}
"""Texts that the index has only on the site, because their targets are not files, by the heading that they replace."""

TOGETHER = """\
!!! note ""
    The examples of this page belong together: a later one uses the names of an earlier one.

"""


def _text(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    alone = file.parent.name != "docs" or file.name.startswith(("from-", "crosswalk-"))
    if not alone and text.count("```python") > 1:
        title, _, rest = text.partition("\n\n")
        return f"{title}\n\n{TOGETHER}{rest}"
    return f"# {file.name}\n\n```python\n{text}```\n" if file.suffix == ".py" else text


def _linked(text: str, file: Path, places: dict[Path, str]) -> str:
    """Return the text of *file* with links for the site. A target that the site lacks is named without a link."""
    here = Path(places[file]).parent

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target) or not path:
            return match[0]
        aim = (file.parent / path).resolve()
        if aim.is_dir() and aim / "README.md" in places:
            aim /= "README.md"
        if aim.suffix in (".svg", ".png"):
            return f"[{label}]({Path(os.path.relpath(aim.relative_to(ROOT / 'docs'), here)).as_posix()})"
        if aim not in places:
            return label if label.startswith("`") else f"`{path}`" if label == path else label
        new = Path(os.path.relpath(places[aim], here)).as_posix()
        return f"[{label}]({new}{'#' if anchor else ''}{anchor})"

    return re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", link, text)


def navigation() -> list[object]:
    """Return the navigation: README as home, the sections of ``docs/index.md`` with their pages, and the reference."""
    reference = ["reference/index.md", *({face: f"reference/{face}.md"} for face in FACES)]
    found: list[object] = [{"Home": ["index.md", {"All pages": "contents.md"}]}]
    sections = (ROOT / "docs/index.md").read_text(encoding="utf-8").split("\n## ")[1:]
    for section in sections:
        links = re.findall(r"\[([^\]]+)\]\(([\w-]+\.md)\)", section)
        if links:
            found.append({section.splitlines()[0]: [{label: path} for label, path in links]})
    project = [("Changes", "changelog"), ("Contributing", "contributing"), ("Security", "security")]
    return [
        *found,
        {"API reference": reference},
        {"Project": [{label: f"{page}.md"} for label, page in project]},
    ]


def _toml(value: object) -> str:
    """Return a navigation as TOML, in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {_toml(inside)}' for key, inside in value.items()) + " }"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else f'"{value}"'


def stage(folder: Path) -> None:
    """Write the site's source into *folder*."""
    for place, text in pages().items():
        file = folder / "pages" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for picture in (*(ROOT / "docs").glob("*.svg"), *(ROOT / "docs").glob("*.png")):
        shutil.copy(picture, folder / "pages" / picture.name)
    with (folder / "pages" / MATRIX).open("wb") as page:
        subprocess.run(
            [sys.executable, "-m", "crosswalk", "table", "--html"], cwd=ROOT, stdout=page, check=True
        )
    (folder / "zensical.toml").write_text(SETTINGS % _toml(navigation()), encoding="utf-8")


if __name__ == "__main__":
    shutil.rmtree(STAGE, ignore_errors=True)
    stage(STAGE)
    command = ["serve"] if "--serve" in sys.argv[1:] else ["build", "--strict"]
    sys.exit(
        subprocess.call([sys.executable, "-m", "zensical", *command, "-f", str(STAGE / "zensical.toml")])
    )
