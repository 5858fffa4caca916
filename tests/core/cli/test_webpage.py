from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from browser import BROWSER, Browser
from crosswalk.plugin.registry import registry

from .conftest import ROOT, Done, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
CAPTURES = ROOT / "tests/captures"
FEW = (
    "ollama/MANIFEST.jsonl",
    "ollama/go_chat_stop.response.json",
    "ollama/chat_length_stream.response.ndjson",
    "ollama/err_gen_unknown_model.response.json",
    "anthropic/made_complete.response.json",
    "anthropic/made_complete_stream.response.sse",
    "anthropic/made_thinking_tools.response.json",
)
EVIL = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"


class Page(HTMLParser):
    """The contents of a page: the rows of its tables as dicts, and all of its text. Checks that tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.starts: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[tuple[dict[str, str | None], str]]] = []
        self.said = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.starts.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append((dict(attrs), ""))
        if tag not in {"meta", "br", "input", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.said += data
        if {"td", "th"} & set(self.open):
            attributes, said = self.rows[-1][-1]
            self.rows[-1][-1] = attributes, said + data

    @property
    def matrix(self) -> dict[str, list[str]]:
        """The states of each field."""
        names = {"n": "native", "d": "derived", "x": "in extensions", "a": "absent"}
        return {
            row[0][1].split(" ")[0]: [names[str(cell["class"])] for cell, _ in row[1:]]
            for row in self.rows
            if len(row) > 1 and "class" in row[1][0]
        }

    def example(self, wire: str) -> str:
        """The example of the first row for the path *wire*."""
        rows = (row for row in self.rows if row[0] == ({"scope": "row", "data-h": "wire"}, wire))
        return next(said for row in rows for cell, said in row if cell.get("data-h") == "example")


def test_a_matrix_of_fields_by_providers(run: Run, tmp_path: Path) -> None:
    for name in FEW:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((CAPTURES / name).read_bytes())
    done = run("table", "ollama,anthropic", tmp_path, "--html")
    assert done.status == 0
    page = Page(done.out)
    heads = [said for cell, said in page.rows[0] if cell.get("scope") == "col"]
    assert heads == ["Canonical field", "Ollama", "Anthropic"]
    matrix = page.matrix
    assert {len(states) for states in matrix.values()} == {2}
    assert matrix["message.content"] == ["native", "native"]
    assert matrix["created"] == ["derived", "absent"]  # Anthropic sends no time: that of mapping is made up
    assert matrix["finish_reason"] == ["native", "derived"]  # "end_turn" is "stop"
    assert matrix["usage.total_tokens"] == ["derived", "derived"]  # of one the sum, which no leaf says
    assert matrix["usage.cached_tokens"] == ["absent", "native"]
    assert matrix["usage.cost.amount"] == ["absent", "absent"]
    assert matrix["load_duration"] == ["in extensions", "absent"]
    order = list(matrix)
    assert order.index("id") < order.index("usage.prompt_tokens") < order.index("load_duration")
    assert "usage.prompt_tokens 2/2" in page.said


def test_each_provider_has_its_wire_paths_with_an_example(run: Run) -> None:
    page = Page(run("table", "ollama", CAPTURES / "ollama/go_chat_stop.response.json", "--html").out)
    assert page.example("done_reason") == '"stop" go_chat_stop'
    sent, said = page.example("total_duration").split(" → ")
    assert int(sent) / 1e9 == pytest.approx(float(said.split(" ")[0]), abs=1e-6)
    fields = {cell["data-f"] for tag, cell in page.starts if tag == "tr" and "data-f" in cell}
    numbers = [number for field in fields for number in str(field).split()]
    assert set(numbers) == set(map(str, range(len(page.matrix))))


def test_what_another_s_typed_field_takes_and_this_one_keeps(
    run: Run, provider: Callable[[object, str], str], captures: Captures
) -> None:
    """The same wire path, typed with one provider, left over with the other."""
    from crosswalk import ResponseDelta
    from crosswalk.plugins import hookimpl, take_string

    class Sparse:
        @hookimpl
        def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
            return [
                ResponseDelta(
                    content_delta=take_string(event["message"], "content"),
                    raw_finish_reason=take_string(event, "done_reason"),
                )
            ]

        @hookimpl
        def map_finish_reason(self, reason: str) -> str:
            return "stop"

    file = captures("a", line(prompt_eval_count=3))
    for name in ("ollama", provider(Sparse(), "sparse")):
        (file.parent / name).mkdir()
        (file.parent / name / "a.json").write_bytes(file.read_bytes())
    page = Page(run("table", "ollama,sparse", file.parent, "--html").out)
    assert page.matrix["usage.prompt_tokens"] == ["native", "in extensions"]
    assert page.matrix["prompt_eval_count"] == ["absent", "in extensions"]


def test_nothing_of_a_capture_is_markup(run: Run, captures: Captures) -> None:
    captures("a", line(EVIL, **{EVIL: EVIL, "b|`\u202e": "x", "a.b": None}))
    done = run("table", "ollama", "captures", "--html")
    assert done.status == 0
    page = Page(done.out)
    tags = [tag for tag, _ in page.starts]
    assert (tags.count("script"), tags.count("img")) == (1, 0)
    assert "<script>document.title" in page.example("message.content")
    assert '["b|`\\u202e"]' in page.said
    assert not {"onclick", "onerror", "src", "style"} & {name for _, cell in page.starts for name in cell}


def test_the_page_loads_nothing(run: Run, captures: Captures) -> None:
    captures("a", line("see http://example.org/x.png"))
    out = run("table", "ollama", "captures", "--html").out
    page = Page(out)
    assert all(str(cell["href"]).startswith("#") for _, cell in page.starts if "href" in cell)
    assert "link" not in {tag for tag, _ in page.starts}
    assert not re.search(r"url\(|@import|fetch\(|import\(|XMLHttp", out)
    (policy,) = (cell["content"] for tag, cell in page.starts if cell.get("http-equiv"))
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in str(policy)


def test_a_long_value_is_shortened_and_a_lost_one_is_marked(
    run: Run, tmp_path: Path, provider: Callable[[object, str], str]
) -> None:
    from crosswalk import ResponseDelta
    from crosswalk.plugins import hookimpl

    class Careless:
        @hookimpl
        def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
            return [ResponseDelta(content_delta=event["message"]["content"], raw_finish_reason="stop")]

        @hookimpl
        def map_finish_reason(self, reason: str) -> str:
            return "stop"

        @hookimpl
        def extensions(self, event: Any) -> dict[str, Any]:
            return {}

    (tmp_path / "a.json").write_text(json.dumps(line("x" * 1000)))
    done = run("table", provider(Careless(), "careless"), tmp_path / "a.json", "--html")
    assert done.status == 1
    page = Page(done.out)
    assert page.example("message.content") == f'"{"x" * 118}… a'
    assert {"lost"} == {cell["class"] for tag, cell in page.starts if tag == "tr" and "class" in cell}


# Which providers.


def test_several_as_text_and_markdown(run: Run, captures: Captures) -> None:
    file = captures("a", line())
    for name in ("ollama", "vllm"):
        (file.parent / name).mkdir()
        (file.parent / name / "a.json").write_bytes(file.read_bytes())
    (file.parent / "vllm/a.json").write_bytes((CAPTURES / "vllm/chat_length.response.json").read_bytes())
    done = run("table", "ollama,vllm,ollama", file.parent)
    assert re.findall(r"^(\w+): unknown endpoint, whole", done.out, re.MULTILINE) == ["ollama", "vllm"]
    done = run("table", "ollama,vllm", file.parent, "--format", "markdown")
    assert re.findall(r"^# .*", done.out, re.MULTILINE) == [
        "# The crosswalk of Ollama",
        "# The crosswalk of vLLM",
    ]
    assert "`crosswalk table ollama,vllm --format markdown`" in done.out
    assert run("table", "ollama,xai", file.parent).status == 2


def with_capture(folder: Path, name: str) -> None:
    """A capture of the provider *name*, where it is looked for below the working directory *folder*."""
    place = folder / "tests/captures" / name
    place.mkdir(parents=True)
    (place / "a.json").write_bytes((CAPTURES / "ollama/go_chat_stop.response.json").read_bytes())


def test_all_that_are_installed_and_have_captures(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Callable[[object, str], str]
) -> None:
    import crosswalk_ollama

    stranger = provider(crosswalk_ollama.plugin, "stranger")
    other = provider(crosswalk_ollama.plugin, "other")
    monkeypatch.setattr(registry, "names", lambda: [stranger, other])
    monkeypatch.chdir(tmp_path)
    done = run("table", "--html")
    assert done.status == 2
    assert done.out == ""
    assert "no captures of any provider here; name a provider and its captures" in done.err
    with_capture(tmp_path, stranger)
    done = run("table", "--html")
    assert done.status == 0
    assert "left out: no captures of other here; name some" in done.err
    assert Page(done.out).matrix["message.content"] == ["native"]


def test_a_broken_one_is_left_out_of_all_and_refused_by_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Callable[[object, str], str]
) -> None:
    import crosswalk_ollama

    broken = provider(object(), "broken")
    working = provider(crosswalk_ollama.plugin, "working")
    monkeypatch.setattr(registry, "names", lambda: [broken, working])
    monkeypatch.chdir(tmp_path)
    with_capture(tmp_path, working)
    done = run("table", "--html")
    assert done.status == 1
    assert "left out: " in done.err
    assert "broken" in done.err
    assert "The crosswalk of " in done.out
    assert run("table", "working,broken", "--html").status != 0


# In a real browser.


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no Chromium here: install one, or name it in CROSSWALK_BROWSER")
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def page(run: Run, captures: Captures, tmp_path: Path) -> Path:
    file = captures("a", line(EVIL, prompt_eval_count=3, load_duration=5, **{EVIL: EVIL}))
    (file.parent / "ollama").mkdir()
    file.rename(file.parent / "ollama/a.json")
    (file.parent / "vllm").mkdir()
    body = (CAPTURES / "vllm/chat_length.response.json").read_bytes()
    (file.parent / "vllm/b.json").write_bytes(body)
    page = tmp_path / "page.html"
    page.write_text(run("table", "ollama,vllm", file.parent, "--html").out, encoding="utf-8")
    return page


SHOWN = "Array.from(document.querySelectorAll('#matrix tr[data-f]')).filter(r => r.checkVisibility()).map(r => r.cells[0].querySelector('code').textContent)"
DIALOG = "document.querySelector('dialog').open && document.querySelector('dialog').innerText"


def test_a_browser_filters_and_drills_down(browser: Browser, page: Path) -> None:
    browser.open(page)
    fields = browser.run(SHOWN)
    assert "usage.prompt_tokens" in fields
    assert "load_duration" not in fields  # until it is asked for
    browser.run("document.querySelector('input[type=search]').focus()")
    for letter in "eval_c":
        browser._call("Input.insertText", text=letter)
    assert browser.run(SHOWN) == ["usage.prompt_tokens"]  # its wire path is prompt_eval_count
    assert browser.run("document.querySelector('output').textContent") == "1 field"
    browser.run("document.querySelector('#matrix tr:not([hidden]) td.n a').focus()")
    browser.press("Enter", "\r")
    said = browser.run(DIALOG)
    assert said.startswith("usage.prompt_tokens · Ollama")
    assert "prompt_eval_count" in said
    browser.press("Escape")
    assert browser.run(DIALOG) is False
    assert browser.run("document.activeElement.title") == "Ollama: native"
    browser.press("ArrowRight")
    assert browser.run("document.activeElement.title") == "vLLM: native"
    browser.run(
        "Object.assign(document.querySelector('input[type=search]'), {value: 'nonesuch'}).form.dispatchEvent(new Event('input'))"
    )
    assert browser.run(SHOWN) == []
    assert browser.run("document.querySelector('#nothing').checkVisibility()")


def test_a_browser_chooses_state_and_provider(browser: Browser, page: Path) -> None:
    browser.open(page)
    choose = "Object.assign(document.querySelector('.controls').elements.{}, {{value: '{}'}}).form.dispatchEvent(new Event('input'))"
    browser.run(choose.format("state", "x"))
    assert "load_duration" in browser.run(SHOWN)
    browser.run(choose.format("provider", "1"))
    assert "load_duration" not in browser.run(SHOWN)
    visible = "Array.from(document.querySelectorAll('#matrix thead th')).filter(c => c.checkVisibility()).map(c => c.innerText)"
    assert browser.run(visible) == ["Canonical field", "vLLM"]
    browser.run("document.querySelector('#matrix thead a[href=\"#p1\"]').click()")
    browser.run("new Promise(resolve => setTimeout(resolve))")
    assert browser.run("location.hash") == "#p1"
    assert browser.run("document.getElementById('p1').open")


def test_a_browser_runs_nothing_of_a_capture_and_asks_for_nothing(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    for number in range(browser.run("document.querySelectorAll('#matrix td a').length")):
        browser.run(f"document.querySelectorAll('#matrix td a')[{number}].click()")
        browser.run("document.querySelector('dialog').close()")
    assert browser.run("document.title") == "The crosswalk of 2 providers"
    assert browser.run("document.querySelectorAll('img').length") == 0
    methods = [event["method"] for event in browser.events]
    assert methods.count("Network.requestWillBeSent") == 1  # for the page itself
    assert not {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"} & set(methods)


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_narrow_and_dark(browser: Browser, page: Path, width: int, scheme: str) -> None:
    browser.open(page, width=width, scheme=scheme)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert browser.run("document.documentElement.scrollWidth") <= width
    colours = browser.run("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
    ink, ground = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert (ink > ground) is (scheme == "dark")
    # A mark says in words, with the provider where there are no columns, what it is.
    mark = browser.run("document.querySelector('#matrix td.n a').innerText")
    assert mark.split() == (["Ollama", "native"] if width == 400 else ["native"]) or "native" in mark
    assert browser.run("document.querySelector('#matrix td.n a').getBoundingClientRect().height") >= 24
