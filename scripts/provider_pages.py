"""Writes the page of each shipped provider: ``python scripts/provider_pages.py [PROVIDER ...]``.

A page has the notes of ``provider_notes.md``, the facts that the plugin declares, and the table that
``crosswalk table PROVIDER --format markdown`` prints for the provider's captures.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from crosswalk.plugin.hooks import Access, ProviderInfo
from crosswalk.plugin.registry import registry

ROOT = Path(__file__).parents[1]


def head(provider: str) -> str:
    """Return the beginning of the page of *provider*: its notes and its declared facts."""
    info = registry.mapper(provider).info
    summary, _, notes = notes_of(provider).partition("\n\n")
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts(provider, info))
    return f"# {info.title}\n\n{summary}\n\n| | |\n|---|---|\n{rows}\n\n{notes}\n\n"


def notes_of(provider: str) -> str:
    """Return the section of *provider* in ``provider_notes.md``."""
    sections = re.split(
        r"^## ", (ROOT / "scripts/provider_notes.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    by_name = dict(section.split("\n", 1) for section in sections[1:])
    return by_name[provider].strip()


def facts(provider: str, info: ProviderInfo) -> list[tuple[str, str]]:
    """Return the declared facts of *provider*, each as name and Markdown."""
    rows = [("Provider id", f"`{provider}`")]
    if info.access is not None:
        rows += reach(info.access)
    ask = f"`crosswalk ask --provider {provider} --model MODEL 'Hi'`"
    rows.append(("Try it", f"{ask}. Without `--model` it lists the models, if the server can"))
    rows.append(("Endpoints", ", ".join(f"`{path}`" for path in info.endpoints)))
    if info.speaks:
        others = (f"[{registry.mapper(name).info.title}](crosswalk-{name}.md)" for name in info.speaks)
        rows.append(("Also answers as", ", ".join(others)))
    if info.hosted_tools:
        rows.append(("Tools of the server", ", ".join(f"`{name}`" for name in sorted(info.hosted_tools))))
    rows.append(("Documentation", f"<{info.documentation}>"))
    return rows


def reach(access: Access) -> list[tuple[str, str]]:
    """Return how to reach the server."""
    address = f"`{access.base_url}`. Change it with `base_url=`"
    keys = "Pass `api_key=`"
    if access.base_url_variables:
        address += f" or {either(access.base_url_variables)}"
    if access.api_key_variables:
        keys += f", or set {either(access.api_key_variables)}"
    optional = "" if access.base_url.startswith("https") else ", if the server needs one"
    return [("Address", address), ("API key", keys + optional)]


def either(variables: tuple[str, ...]) -> str:
    """Return names of environment variables as words."""
    return " or ".join(f"`{name}`" for name in variables)


def page(provider: str, table: str) -> str:
    """Return the whole page of *provider*, with *table* as printed by ``crosswalk table``."""
    return head(provider) + re.sub(r"^#", "##", table, flags=re.MULTILINE)


def table(provider: str) -> str:
    """Return the output of ``crosswalk table`` for the captures of *provider*."""
    command = [sys.executable, "-m", "crosswalk", "table", provider, "--format", "markdown"]
    done = subprocess.run(
        [*command, str(ROOT / "tests/captures" / provider)], check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout


def main(providers: list[str]) -> None:
    """Write the pages of *providers*, or of all."""
    for provider in providers or registry.names():
        path = ROOT / f"docs/crosswalk-{provider}.md"
        path.write_text(page(provider, table(provider)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
