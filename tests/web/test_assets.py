"""Compression and caching of pages and their files, as HTTP defines them."""

import pytest

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
