"""The same requests to this source tree and to another commit of it; every difference between their answers, by kind.

    python -m tests.campaigns.compare_trees --against REV --out build/differences.md

Status, headers, fields, their order, texts and numbers (to 1e-8) are compared; about a minute. First no key exists,
then requests have one with every scope. A second service of this tree receives the same requests: what differs between
the two, such as times and new ids, is not compared.
"""

import argparse
import http.client
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from app.formats.markdown import table
from tests.campaigns.answer_differences import Answer, Difference, differences
from tests.campaigns.comparison_requests import Request, all_requests
from tests.campaigns.reports import command_line, opening, write_report
from tests.campaigns.servers import OUR_TREE, TIMEOUT_SECONDS, create_key, get
from tests.campaigns.trees import head_commit, service_of_tree, worktree

OVER_RATE = 429

KINDS = {
    "status": "Status codes",
    "header": "Headers",
    "number": "Numbers that differ by more than 1e-8",
    "value": "Values of another type, or that are neither numbers nor texts",
    "length": "Lists of another length",
    "response": "Responses of the OpenAPI document that only one tree has",
    "field": "Fields that only one tree has",
    "member": "Errors, limits and records that only one tree has",
    "order": "Errors, limits and records in another order",
    "order of fields": "Fields in another order",
    "metric": "Metrics that only one tree has",
    "text": "Texts",
    "page": "Pages and files",
}
EXAMPLES = 4  # of each difference
LONGEST, CONTEXT = 160, 24  # characters of a text in the report, and of what comes before its first difference
SCOPES = ("score", "model:read", "audit:read", "admin")


@dataclass(slots=True)
class Found:
    """One kind of difference at one location."""

    requests: list[Request] = field(default_factory=list)
    values: Counter[tuple[str, str]] = field(default_factory=Counter)  # before and now


@dataclass(frozen=True, slots=True)
class Comparison:
    revision: str
    statuses: Counter[int]  # of this tree
    found: dict[tuple[str, str], Found]  # by kind and location
    not_compared: Counter[str]
    load_average: tuple[float, float]


def compare(revision: str, count: int, seed: int, every: int = 1) -> Comparison:
    """`every`: only every so many-th request is sent."""
    load = os.getloadavg()[0]
    statuses: Counter[int] = Counter()
    not_compared: Counter[str] = Counter()
    found: dict[tuple[str, str], Found] = {}
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        theirs = stack.enter_context(worktree(revision, Path(temporary) / "tree"))
        trees = {"theirs": theirs, "ours": OUR_TREE, "control": OUR_TREE}
        folders = {name: Path(temporary) / name for name in trees}
        ports = {name: stack.enter_context(service_of_tree(trees[name], folders[name])).port for name in trees}
        templates = {path for port in ports.values() for path in json.loads(get(port, "/openapi.json")[1])["paths"]}
        numbers = itertools.count()
        keys = dict.fromkeys(trees, "")
        for random_scores in (count, 0):  # without a key, then with one
            for request, number in zip(all_requests(templates, random_scores, seed)[::every], numbers, strict=False):
                before, now, control = (send(ports[name], request, number, keys[name]) for name in trees)
                statuses[now.status] += 1
                varying = {(each.kind, each.where) for each in differences(now, control)}
                not_compared.update(f"{kind} {where}" for kind, where in varying)
                add(
                    found,
                    request,
                    [each for each in differences(before, now) if (each.kind, each.where) not in varying],
                )
            if not keys["ours"]:
                for name, tree in trees.items():
                    keys[name] = create_key(ports[name], {"NORMALCY_DATA_DIR": str(folders[name])}, SCOPES, tree)
        commit = head_commit(theirs)
    return Comparison(commit, statuses, found, not_compared, (load, os.getloadavg()[0]))


def send(port: int, request: Request, number: int, key: str) -> Answer:
    """As `_send`, but waits where the service limits the rate of requests."""
    while (answer := _send(port, request, number, key)).status == OVER_RATE:
        time.sleep(float(answer.headers["retry-after"]))
    return answer


def _send(port: int, request: Request, number: int, key: str) -> Answer:
    """On a connection of its own, with a request id that both services get."""
    credential = {"Authorization": f"Bearer {key}"} if key else {}
    headers = {"X-Request-ID": f"compared-{number}", **credential, **request.headers}
    if request.body is not None:
        headers = {"Content-Type": "application/json"} | headers
    headers = {name: value for name, value in headers.items() if value}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)) as connection:
        connection.request(request.method, request.path, request.body, headers)
        with connection.getresponse() as response:
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())


def add(found: dict[tuple[str, str], Found], request: Request, seen: Iterable[Difference]) -> None:
    for each in seen:
        where = request.path if each.kind == "page" else each.where
        group = found.setdefault((each.kind, where), Found())
        group.values[each.before, each.now] += 1
        if not group.requests or group.requests[-1] is not request:
            group.requests.append(request)


def render(comparison: Comparison, command: str) -> list[str]:
    total = sum(comparison.statuses.values())
    answers = ", ".join(f"{status}: {count:,}" for status, count in sorted(comparison.statuses.items()))
    unchanged = [title for kind, title in KINDS.items() if all(kind != other for other, _ in comparison.found)]
    varying = ", ".join(f"`{name}` ({count:,})" for name, count in comparison.not_compared.most_common())
    return [
        *opening(f"Answers of this tree and of commit {comparison.revision}", command, comparison.load_average),
        f"{total:,} requests were sent to both. Answers of this tree by status: {answers}.",
        "",
        f"No difference: {'; '.join(unchanged) or 'nowhere'}.",
        "",
        f"Not compared where two services of this tree differ too (number of requests): {varying}.",
        "",
        *(line for kind, title in KINDS.items() for line in _kind_lines(comparison, kind, title)),
    ]


def _kind_lines(comparison: Comparison, kind: str, title: str) -> list[str]:
    groups = {where: found for (other, where), found in comparison.found.items() if other == kind}
    if not groups:
        return []
    rows = []
    for where, found in sorted(groups.items(), key=lambda item: -len(item[1].requests)):
        first = [_cell(where), f"{len(found.requests):,}", _cell(str(found.requests[0]))]
        for (before, now), count in found.values.most_common(EXAMPLES):
            equal = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
            start = max(0, len(list(equal)) - CONTEXT)
            rows.append([*first, f"{count:,}", _cell(before, start), _cell(now, start)])
            first = [""] * len(first)
        if (more := len(found.values) - EXAMPLES) > 0:
            rows.append([*first, "", f"and {more:,} more", ""])
    return [f"## {title}", "", *table(("where", "requests", "first request", "times", "before", "now"), rows)]


def _cell(text: str, start: int = 0) -> str:
    """A part of a text, as code."""
    part = ("…" if start else "") + text[start : start + LONGEST] + ("…" if len(text) > start + LONGEST else "")
    printable = "".join(char if char.isprintable() else "�" for char in part)
    return f"`{printable.replace('|', '¦').replace('`', '´')}`" if printable else ""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.compare_trees",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--against", metavar="REV", required=True, help="the commit to compare with")
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--count", type=int, default=400, help="of random single scores, and as many studies")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="send only every so many-th request, to try it")
    given = parser.parse_args(arguments)
    comparison = compare(given.against, given.count, given.seed, given.every)
    write_report(given.out, render(comparison, command_line("tests.campaigns.compare_trees", arguments, given.out)))


if __name__ == "__main__":
    main(sys.argv[1:])
