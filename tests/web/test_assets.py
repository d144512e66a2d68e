"""Compression and caching of pages and their files, as HTTP defines them."""

import pytest

from app.web.accept import MAX_ELEMENTS
from tests.web.serving import Running

PAGE = "/assets/page.css"


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("br, GZIP;q=0.5", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0", None),
        ("gzip; q=0.000, identity", None),
        ("*;q=0", None),
        ("br, *;q=0.1, gzip;q=0", None),
        ("notgzip", None),
        ("identity", None),
        ("", None),
    ],
)
def test_a_file_is_compressed_only_for_those_who_accept_it(shared: Running, accepted: str, coding: str | None) -> None:
    found = shared.client.get(PAGE, headers={"Accept-Encoding": accepted})
    assert found.status_code == 200
    assert found.headers.get("Content-Encoding") == coding
    assert found.headers["Vary"] == "Accept-Encoding"
    assert "body" in found.text


def test_a_copy_that_is_current_is_not_sent_again(shared: Running) -> None:
    etag = shared.client.get(PAGE).headers["ETag"]
    for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = shared.client.get(PAGE, headers={"If-None-Match": sent})
        assert (again.status_code, again.content) == (304, b""), sent
        assert again.headers["ETag"] == etag
    for sent in ('"other"', f"x{etag}", ""):
        assert shared.client.get(PAGE, headers={"If-None-Match": sent}).status_code == 200, sent


@pytest.mark.req("REQ-095")
def test_of_a_list_in_a_header_only_the_first_elements_are_read(shared: Running) -> None:
    """Anybody may send thousands, which took the service 14 ms for each request."""
    etag = shared.client.get(PAGE).headers["ETag"]
    for before, status, coding in ((MAX_ELEMENTS - 1, 304, "gzip"), (MAX_ELEMENTS, 200, None)):
        others = '"x",' * before
        assert shared.client.get(PAGE, headers={"If-None-Match": others + etag}).status_code == status
        found = shared.client.get(PAGE, headers={"Accept-Encoding": f"{others}gzip"})
        assert found.headers.get("Content-Encoding") == coding
