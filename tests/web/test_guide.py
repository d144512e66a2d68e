"""The guide and the cards, as the service serves them: anchors that problems point to, pages that a browser shows."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from app.schemas.problem import PROBLEMS
from app.web import markdown_page
from app.web.app import ROUTES
from app.web.guide import CHAPTERS, NOT_IN_USE, chapter, guide
from tests.web.serving import Running, bearer, create_key

CARD = "/models/SoV/1.0.0"


class Seen(HTMLParser):
    """What a page holds: tags, ids, links, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
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


def test_what_is_not_in_use_yet_says_so(page: Seen) -> None:
    assert page.text.count("Not in use yet.") == len(NOT_IN_USE)


def test_anchors_are_unique_and_links_lead_somewhere(shared: Running, page: Seen) -> None:
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        path, _, anchor = link.partition("#")
        assert not anchor or anchor in page.ids, link
        if path:
            assert shared.client.get(f"/{path.removeprefix('./')}").status_code == 200, link


@pytest.mark.parametrize("path", ["/guide", CARD])
def test_nothing_runs_on_a_page_and_nothing_is_styled_in_its_text(shared: Running, path: str) -> None:
    seen = Seen(shared.client.get(path).text)
    assert not {"script", "style", "img", "iframe", "form"} & seen.tags.keys()
    assert "style" not in seen.attributes
    assert not any(name.startswith("on") for name in seen.attributes)
    assert seen.tags["h1"] == seen.tags["main"] == seen.tags["nav"] == 1


@pytest.mark.parametrize("path", ["/", "/guide", "/docs", CARD])
def test_a_page_can_be_asked_for_its_headers_alone(shared: Running, path: str) -> None:
    got, asked = shared.client.get(path), shared.client.head(path)
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["Content-Length"] == str(len(got.content))
    assert asked.headers["Content-Security-Policy"] == got.headers["Content-Security-Policy"]


def test_a_card_says_what_its_version_is(shared: Running) -> None:
    seen = Seen(shared.client.get(CARD).text)
    card = shared.client.get("/v1/models/SoV/1.0.0").json()
    assert "SoV 1.0.0" in seen.text
    assert "Not for care" in seen.text
    assert card["sha256"] in seen.text
    assert card["cohort"]["table_sha256"] in seen.text
    assert "../../v1/models/SoV/1.0.0" in seen.links
    assert "SoV 1.1.0" in Seen(shared.client.get("/models/SoV/current").text).text


@pytest.mark.parametrize(
    ("path", "slug"), [("/models/none/1.0.0", "unknown-site"), ("/models/SoV/9.0.0", "unknown-version")]
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
    assert running.client.get(CARD).status_code == 401
    assert running.client.get(CARD, headers=bearer(other)).status_code == 403
    assert running.client.get(CARD, headers=bearer(key)).status_code == 200


def test_what_a_card_says_cannot_act_on_the_page() -> None:
    hostile = '# T\n\n<script>x</script> ![p](http://a/b.png) [l](javascript:x) <b onclick="x" style="y">e</b>'
    seen = Seen(markdown_page.render(hostile, "<b>"))
    assert not {"script", "img", "b"} & seen.tags.keys()
    assert not any(link.startswith("javascript") for link in seen.links)
    assert "style" not in seen.attributes


def test_every_chapter_is_part_of_the_guide_and_every_placeholder_is_filled() -> None:
    text = guide(ROUTES)
    assert "{{" not in text
    for name in CHAPTERS:
        found = re.search(r"^#+ (.*)$", chapter(name), re.MULTILINE)
        assert found
        assert found[0] in text
