"""The documentation site: every public name is in its reference, and the index leads there."""

from __future__ import annotations

import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import crosswalk

pytestmark = pytest.mark.sweep  # of all public names; and what it tries is not measured

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
reference, site_pages, pictures = map(import_module, ("reference", "site_pages", "pictures"))


@pytest.fixture(scope="module")
def places() -> dict[str, str]:
    """Every page of the site by its place."""
    return dict(site_pages.pages())


@pytest.fixture(scope="module")
def described(places: dict[str, str]) -> dict[str, str]:
    """The pages of the reference."""
    return {place.removeprefix("reference/"): text for place, text in places.items() if "reference/" in place}


def test_every_package_is_public_or_said_not_to_be() -> None:
    found = {f"crosswalk.{module.name}" for module in pkgutil.iter_modules(crosswalk.__path__)}
    assert found == {*reference.FACES[1:], *(f"crosswalk.{name}" for name in reference.INTERNAL)}


@pytest.mark.parametrize("face", reference.FACES)
def test_every_public_name_has_a_section(face: str, described: dict[str, str]) -> None:
    """Its page shows it, the index of all names leads to it, and so does the page of each package that has it."""
    found = {name: place.partition("#")[::2] for name, place in links(described[f"{face}.md"])}
    everywhere = dict(links(described["index.md"]))
    for name in import_module(face).__all__:
        page, anchor = found[name]
        assert f"{{ #{anchor} }}" in described[page], name
        assert name in everywhere


def links(page: str) -> list[tuple[str, str]]:
    """The names that the tables of *page* lead to."""
    return re.findall(r"^\| \[`(\w+)`\]\((\S+)\)", page, re.MULTILINE)


def test_a_name_that_means_several_things_leads_to_each(described: dict[str, str]) -> None:
    places = [place for name, place in links(described["index.md"]) if name == "to_json"]
    assert len(places) == len(set(places)) == 2


def test_every_public_name_says_what_it_is() -> None:
    names, _ = reference.public_names()
    assert [name.anchor for name in names if not name.summary] == []


def test_a_section_shows_how_it_is_called_and_what_may_go_wrong(described: dict[str, str]) -> None:
    page = described["crosswalk-mapping.md"]
    section = page[page.index("{ #crosswalk.normalize }") :]
    section = section[: section.index("\n## ")]
    assert "from crosswalk import normalize" in section
    assert "provider: str | None = None" in section
    for title in ("**Arguments**", "**Raises**"):
        assert title in section
    assert "``" not in section.replace("```", "")  # no reStructuredText is left


def test_the_site_holds_every_page_and_names_it_at_the_side(places: dict[str, str]) -> None:
    side = str(site_pages.navigation())
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name in places
        assert f"'{page.name}'" in side, page.name
    for face in reference.FACES:
        assert f"'reference/{face}.md'" in side


def test_a_page_whose_examples_belong_together_says_so(places: dict[str, str]) -> None:
    assert "The examples of this page belong together" in places["streaming.md"]
    assert "The examples of this page belong together" not in places["from-openai.md"]


def test_links_out_of_the_docs_stay_on_the_site(places: dict[str, str]) -> None:
    assert "](contributing.md)" in places["index.md"]
    assert "](contents.md)" in places["index.md"]
    assert "](reference/index.md)" in places["contents.md"]
    assert (
        "](../plugins.md" in places["examples/index.md"]
        or "](../writing-a-plugin.md" in places["examples/index.md"]
    )
    linked = [
        target for text in places.values() for target in re.findall(r"\]\((?!https:)([^)\s#]+\.py)\)", text)
    ]
    assert linked == []


def test_the_index_leads_to_the_page_of_all_providers(places: dict[str, str]) -> None:
    """It is made when the site is built, from the captures."""
    assert f"]({site_pages.MATRIX})" in places["contents.md"]
    assert all(f"\n{heading}" in (ROOT / "docs/index.md").read_text() for heading in site_pages.ONLY_HERE)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_shows_what_the_command_shows_now(name: str) -> None:
    """If this fails: ``python scripts/pictures.py``, and look at what changed."""
    shown = (ROOT / f"docs/{name}.svg").read_text()
    assert pictures.said(shown) == pictures.said(pictures.record(name))
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(re.search(rf"\]\((docs/)?{name}\.svg\)", page.read_text()) for page in pages)
    assert not re.search(r"https?://(?!www\.w3\.org|www\.textualize\.io|localhost)", shown)


def test_what_a_picture_says_is_all_but_the_time_it_took() -> None:
    text = "<text x='1'>Speed:&#160;1050.2&#160;tok/s&#160;&#160;│&#160;&#160;TTFT:&#160;5.9ms</text>"
    assert pictures.said(text) == "Speed: N tok/s │ TTFT: N s"
