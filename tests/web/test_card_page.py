"""The content of a card's page: text, pictures and history."""

import re

from tests.web.serving import Running, bearer, create_key

CONTENT = "/models/SoV/1.0.0/content"


def test_the_card_has_its_pictures_where_the_text_speaks_of_them(shared: Running) -> None:
    page = shared.client.get(CONTENT)
    assert page.status_code == 200
    figures = re.findall(r'<figure><svg [^>]*class="nc-chart nc-([a-z-]+)"', page.text)
    assert figures == ["cohort", "ranges", "widths", "reliability-map", "reliability-map", "pit", "tails"]
    assert "```" not in page.text
    assert "<code>picture" not in page.text
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page.text)
    assert headings[-2:] == ["History of the site", "Digest"]


def test_pictures_are_drawn_for_the_width_of_the_screen(shared: Running) -> None:
    narrow = shared.client.get(CONTENT, params={"width": 340}).text
    assert set(re.findall(r'<svg [^>]*?\bwidth="(\d+)"', narrow)) == {"340"}
    refused = shared.client.get(CONTENT, params={"width": 99999})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["width"]
    assert "99999" not in refused.text


def test_the_history_is_that_of_the_activations(running: Running) -> None:
    before = running.client.get(CONTENT).text
    assert "1.1.0 is current." in before
    assert "No activation is on record" in before
    key = bearer(create_key(running.settings, ["admin", "model:read"]))
    running.inside(running.runtime.poller.refresh())
    activate = running.client.post("/v1/models/SoV/activate", json={"version": "1.0.0"}, headers=key)
    assert activate.status_code == 200
    after = running.client.get(CONTENT, headers=key).text
    assert "1.0.0 is current; this is that version." in after
    [period] = running.client.get("/v1/models/SoV/history", headers=key).json()["history"]
    row = "".join(f"<td>{cell}</td>\n" for cell in (period["version"], period["from"], "today", period["by"]))
    assert row in after
