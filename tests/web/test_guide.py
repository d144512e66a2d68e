"""The guide and the cards, as the service serves them: anchors that problems point to, pages that a browser shows."""

from collections import Counter
from html.parser import HTMLParser
from urllib.parse import urljoin

import pytest

from app.schemas.problem import PROBLEMS
from app.web import markdown_page
from app.web.guide import served_link
from tests.documents import DOCS, ROOT
from tests.web.serving import Running, bearer, create_key

CARD = "/models/SoV/1.0.0/content"
PAGES = ["/guide", *(f"/guide/{name[5:-3]}" for name in DOCS if name != "docs/index.md")]


class Seen(HTMLParser):
    """What a page holds: tags, ids, links, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        given = dict(attrs)
        self.attributes |= given.keys()
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given["href"]))
        if tag == "img":
            self.pictures.append(str(given["src"]))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def page(shared: Running) -> Seen:
    return Seen(shared.client.get("/guide").text)


def test_every_problem_type_leads_to_its_explanation(shared: Running, page: Seen) -> None:
    for problem in PROBLEMS:
        path, _, anchor = problem.type.partition("#")
        assert path == "/guide"
        assert page.ids.count(anchor) == 1, anchor
        assert problem.title in page.text
    answer = shared.client.post("/v1/sites/SoV/score", json={}).json()
    assert answer["type"].partition("#")[2] in page.ids


@pytest.mark.parametrize("path", PAGES)
def test_anchors_are_unique_and_links_lead_somewhere(shared: Running, path: str) -> None:
    seen = Seen(shared.client.get(path).text)
    assert len(seen.ids) == len(set(seen.ids))
    for link in (*seen.links, *seen.pictures):
        if "://" in link:
            continue
        url, _, anchor = urljoin(path, link).partition("#")
        got = shared.client.get(url)
        assert got.status_code == 200, link
        assert not anchor or anchor in Seen(got.text).ids, link


def test_links_lead_from_page_to_page_and_never_out_of_the_guide(shared: Running) -> None:
    """Behind any prefix, so they are relative."""
    assert served_link("index", "clinicians.md#advisories") == "guide/clinicians#advisories"
    assert served_link("operators", "clinicians.md") == "clinicians"
    assert served_link("operators", "index.md#kinds-of-problems") == "../guide#kinds-of-problems"
    assert served_link("operators", "#keys") == "#keys"
    assert served_link("operators", "https://example.org/") == "https://example.org/"
    assert served_link("index", "../CONTRIBUTING.md") is None
    assert served_link("paper", "paper/growth.svg") is None
    page = shared.client.get("/guide").text
    assert "CONTRIBUTING" in page
    assert "CONTRIBUTING.md" not in page


def test_every_document_is_a_page_with_its_own_title(shared: Running) -> None:
    for path in PAGES:
        page = shared.client.get(path)
        assert page.status_code == 200
        assert "<!--" not in page.text
        assert "&lt;!--" not in page.text
    assert "<title>Normalcy: For clinicians</title>" in shared.client.get("/guide/clinicians").text


@pytest.mark.parametrize(
    "path", ["/guide/nothing", "/guide/index", "/guide/index.md", "/guide/pictures/nothing.svg", "/guide/..%2FREADME"]
)
def test_what_is_not_a_document_is_not_found(shared: Running, path: str) -> None:
    answer = shared.client.get(path)
    assert answer.status_code == 404
    assert answer.json()["type"].endswith("-unknown-route")


def test_pictures_are_served_with_their_type(shared: Running) -> None:
    for file in (ROOT / "docs" / "pictures").glob("*.svg"):
        got = shared.client.get(f"/guide/pictures/{file.name}")
        assert got.headers["Content-Type"].startswith("image/svg+xml")
        assert got.content == file.read_bytes()


@pytest.mark.parametrize("path", ["/guide", "/guide/clinicians", CARD])
def test_nothing_runs_on_a_page_and_nothing_is_styled_in_its_text(shared: Running, path: str) -> None:
    seen = Seen(shared.client.get(path).text)
    assert not {"script", "style", "iframe", "form"} & seen.tags.keys()
    assert path != CARD or "img" not in seen.tags
    assert "style" not in seen.attributes
    assert not any(name.startswith("on") for name in seen.attributes)
    assert seen.tags["h1"] == seen.tags["main"] == 1
    assert seen.tags["nav"] == 2  # pages, contents


@pytest.mark.parametrize("path", ["/", "/guide", "/docs", "/models/SoV/1.0.0", CARD])
def test_a_page_can_be_asked_for_its_headers_alone(shared: Running, path: str) -> None:
    got, asked = shared.client.get(path), shared.client.head(path)
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["Content-Length"] == got.headers["Content-Length"]
    assert asked.headers["Content-Security-Policy"] == got.headers["Content-Security-Policy"]


def test_a_card_says_what_its_version_is(shared: Running) -> None:
    seen = Seen(shared.client.get(CARD).text)
    card = shared.client.get("/v1/models/SoV/1.0.0").json()
    assert "SoV 1.0.0" in seen.text
    assert "Not for care" in seen.text
    assert card["sha256"] in seen.text
    assert card["cohort"]["table_sha256"] in seen.text
    assert "../../v1/models/SoV/1.0.0" in seen.links
    assert "SoV 1.1.0" in Seen(shared.client.get("/models/SoV/current/content").text).text


@pytest.mark.parametrize(
    ("path", "slug"), [("/models/none/1.0.0/content", "unknown-site"), ("/models/SoV/9.0.0/content", "unknown-version")]
)
def test_a_card_that_is_not_there_is_a_problem(shared: Running, path: str, slug: str) -> None:
    answer = shared.client.get(path)
    assert answer.status_code == 404
    assert answer.json()["type"].endswith(f"-{slug}")


def test_a_card_is_read_with_a_key_and_the_guide_without(running: Running) -> None:
    key = create_key(running.settings, ["model:read"])
    other = create_key(running.settings, ["score"])
    running.inside(running.runtime.poller.refresh())
    assert running.client.get("/guide").status_code == 200
    shell = running.client.get("/models/SoV/1.0.0")
    assert shell.status_code == 200
    assert "Trained on" not in shell.text
    assert running.client.get(CARD).status_code == 401
    assert running.client.get(CARD, headers=bearer(other)).status_code == 403
    assert running.client.get(CARD, headers=bearer(key)).status_code == 200


def test_what_a_card_says_cannot_act_on_the_page() -> None:
    hostile = '# T\n\n<script>x</script> ![p](http://a/b.png) [l](javascript:x) <b onclick="x" style="y">e</b>'
    seen = Seen(markdown_page.render(hostile, "<b>"))
    assert not {"script", "img", "b"} & seen.tags.keys()
    assert not any(link.startswith("javascript") for link in seen.links)
    assert "style" not in seen.attributes
