#!/usr/bin/env python3
"""Verify an audit without Normalcy: written from docs/auditors.md, with the standard library and `cryptography` alone.

    python3 verify_audit.py normalcy.sqlite3 [--checkpoint FILE]... [--public-key FILE]...
    python3 verify_audit.py audit.csv --signed signed.csv [--checkpoint FILE]... [--public-key FILE]...

The CSV files are psql's exports, as the document gives them. payload_dictionary.txt must be beside this file. Exit
code 0: intact; 1: damaged, one line for each chain or checkpoint that is (the first damage of each); 2: could not
check. Rows that are not signed yet are remarks. Without a public key signatures are not checked, and `cryptography` is
not needed.
"""

import argparse
import hashlib
import json
import re
import sqlite3
import sys
import zlib
from collections import defaultdict
from contextlib import closing
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from uuid import UUID

COLUMNS = "month chain_id seq record_id request_id item kind at principal status site version payload row_hash".split()
SIGNED_COLUMNS = "writer number kind body signature".split()
NULL = type(None)
PAYLOAD = dict.fromkeys("at kind principal record_id".split(), (str,)) | {"v": (int,)}
PAYLOAD |= dict.fromkeys(("request_id", "route"), (str, NULL)) | dict.fromkeys(("item", "status"), (int, NULL))
PAYLOAD |= dict.fromkeys(("input", "model", "output"), (dict, NULL))
MODEL = dict.fromkeys(("site", "version", "sha256"), (str,))
BODY = dict.fromkeys("kind key_id writer previous at database root".split(), (str,))
BODY |= {"v": (int,), "number": (int,), "ends": (list,), "public_key": (str, NULL)}
END = {"month": (str,), "chain_id": (str,), "seq": (int,), "head": (str,), "closed": (bool,)}
LINE = dict.fromkeys(("body", "signature"), (str,))
UUIDS = {"chain_id", "record_id", "writer"}
KINDS = {"score", "refusal", "read", "key", "activation", "genesis", "seal"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
USUAL_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CELL = re.compile(r'(?:^|(?<=,))(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(?:,|\r?\n|\Z)')
PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
PREFIX = b"normalcy checkpoint v1\0"
MAX_DEPTH = 64
MAX_INFLATED = 1 << 26
TWO_INTERVALS = timedelta(seconds=120)
NO_CHECKPOINT = "0" * 64
TABLE = "the table"
MALFORMED = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


def is_sqlite(path):
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def open_sqlite(path):
    """One transaction for both tables: a service may be writing."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.text_factory = lambda content: content.decode("utf-8", "backslashreplace")
    connection.execute("BEGIN")
    return connection


def table_of_sqlite(connection, table, columns, order):
    for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}"):
        yield lenient(dict(zip(columns, row, strict=True)))


def table_of_csv(path, columns, numbers, blobs):
    with path.open(newline="", encoding="utf-8") as file:
        records = csv_records(file)
        header = next(records, ())
        if not set(columns) <= set(header):
            raise ValueError(f"{path} needs the columns {', '.join(columns)}, as psql exports them.")
        for record in records:
            row = dict(zip(header, record, strict=True))
            cells = {name: row[name] for name in columns}
            cells |= {name: row[name].replace("-", "") for name in UUIDS & row.keys()}  # as SQLite has them
            cells |= {name: row[name] and int(row[name]) for name in numbers}
            yield cells | {name: bytes.fromhex(row[name]) for name in blobs}


def csv_records(file):
    """NULL, an empty cell without quotation marks, is None. Python's csv module takes it for an empty text."""
    lines, quotes = [], 0
    for line in file:
        lines.append(line)
        quotes += line.count('"')
        if quotes % 2 == 0:
            cells = list(CELL.finditer("".join(lines)))
            if "".join(cell[0] for cell in cells) != "".join(lines):
                raise ValueError("a record of a CSV file is malformed")
            yield [cell[2] or None if cell[1] is None else cell[1].replace('""', '"') for cell in cells]
            lines.clear()
    if lines:
        raise ValueError("the last record of a CSV file is unfinished")


def lenient(row):
    """SQLite stores any type in any column: a value of the wrong type becomes one that is never written."""
    for name in {"payload", "row_hash", "body", "signature"} & row.keys():
        row[name] = row[name] if isinstance(row[name], bytes) else b""
    for name in {"seq", "number"} & row.keys():
        row[name] = row[name] if isinstance(row[name], int) else -1
    for name in {"month", "kind", "at"} & row.keys():
        row[name] = str(row[name])
    return row


def imported(path):
    """psql's export in a database on disk that nobody else has, so that its rows can be read chain by chain."""
    connection = sqlite3.connect("")
    connection.execute(f"CREATE TABLE audit_records ({', '.join(COLUMNS)})")
    rows = table_of_csv(path, COLUMNS, ("seq", "item", "status"), ("payload", "row_hash"))
    places = ", ".join(f":{name}" for name in COLUMNS)
    connection.executemany(f"INSERT INTO audit_records VALUES ({places})", rows)
    return connection


def signed_rows(export, connection):
    """The rows of audit_checkpoints, from the SQLite file or from psql's export of that table."""
    if connection:
        return table_of_sqlite(connection, "audit_checkpoints", SIGNED_COLUMNS, "writer, number")
    return table_of_csv(export, SIGNED_COLUMNS, ("number",), ("body", "signature")) if export else iter(())


@cache
def payload_dictionary():
    return Path(__file__).with_name("payload_dictionary.txt").read_bytes()


def inflated(stored):
    """The payload as it was hashed. What is not a whole stream of at most 64 MiB is returned unchanged: it is none."""
    if stored[:1] == b"{":
        return stored
    stream = zlib.decompressobj(zdict=payload_dictionary())
    try:
        payload = stream.decompress(stored, MAX_INFLATED)
    except zlib.error:
        return stored
    return payload if stream.eof and not stream.unused_data else stored


def row_hash(previous, chain_id, seq, record_id, payload):
    where = chain_id.bytes + seq.to_bytes(8, "big") + record_id.bytes
    return hashlib.sha256(b"v1\0" + previous + where + hashlib.sha256(payload).digest()).digest()


def finite(text, kind=float):
    number = kind(text)
    if not abs(number) <= sys.float_info.max:  # NaN is not either
        raise ValueError("no double holds it")
    return number


def without_repetition(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is repeated")
    return dict(pairs)


STRICT = {"object_pairs_hook": without_repetition, "parse_float": finite, "parse_constant": finite}
STRICT["parse_int"] = partial(finite, kind=int)


def is_deeper(value, levels):
    if not isinstance(value, (dict, list)):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(is_deeper(part, levels - 1) for part in parts)


def read_payload(content):
    """Raises one of MALFORMED for what is not a payload of version 1."""
    payload = json.loads(content.decode(), **STRICT)
    if b"\\u" in content:
        json.dumps(payload, ensure_ascii=False).encode()  # fails for half of a surrogate pair
    if content.count(b"[") + content.count(b"{") > MAX_DEPTH and is_deeper(payload, MAX_DEPTH + 1):
        raise ValueError("nested too deeply")
    is_right = (
        has_types(payload, PAYLOAD)
        and payload["v"] == 1
        and payload["kind"] in KINDS
        and TIME.fullmatch(payload["at"])
        and USUAL_UUID.fullmatch(payload["record_id"])
        and (payload["model"] is None or has_types(payload["model"], MODEL))
    )
    if not is_right:
        raise ValueError("not as the format says")
    return payload


def payload_problem(row, content):
    try:
        payload = read_payload(content)
        model = payload["model"] or {"site": None, "version": None}
        said = {**payload, "record_id": UUID(payload["record_id"]), "site": model["site"], "version": model["version"]}
    except MALFORMED:
        return "the payload is not a record of version 1"
    if row["seq"] == 1 and payload["kind"] != "genesis":
        return "the chain does not start with a genesis"
    if payload["kind"] == "genesis":
        said["month"] = (payload["input"] or {}).get("month")
    columns = {**row, "record_id": parse_uuid(row["record_id"])}
    different = [name for name in COLUMNS if name in said and said[name] != columns[name]]
    return f"columns differ from the payload: {', '.join(different)}" if different else None


def parse_uuid(text):
    """Of a column. Only the spelling that the format gives counts: to SQLite another one is another key."""
    return UUID(text) if isinstance(text, str) and re.fullmatch("[0-9a-f]{32}", text) else UUID(int=0)


class Chain:
    """A chain while its rows are read in order: what the next row needs, and the first damage as (row, kind, words)."""

    def __init__(self, month, covered, signed_seq):
        """`covered`: by number, the hashes of checkpoints. `signed_seq`: the last row that its writer signed."""
        self.month, self.covered, self.signed_seq = month, covered, signed_seq
        self.rows, self.previous, self.sealed, self.problem = 0, bytes(32), False, None
        self.unsigned, self.oldest, self.newest = 0, "", ""

    def add(self, row):
        self.problem = self.problem or self.order_problem(row) or self.row_problem(row)
        self.rows, self.previous, self.sealed = self.rows + 1, row["row_hash"], row["kind"] == "seal"
        if row["seq"] > self.signed_seq:
            self.unsigned += 1
            self.oldest, self.newest = min(self.oldest or row["at"], row["at"]), max(self.newest, row["at"])

    def finish(self):
        last = max(self.covered, default=0)
        if self.problem is None and self.rows < last:
            self.problem = (self.rows + 1, "TRUNCATED", f"missing; a checkpoint covers {last} rows")
        return self.problem

    def order_problem(self, row):
        number = self.rows + 1
        if row["month"] != self.month:
            return row["seq"], "FORK", "the chain is in two months"
        if row["seq"] < number:
            return row["seq"], "FORK", "a number twice"
        if row["seq"] > number:
            return number, "GAP", "missing"
        return (number, "AFTER_SEAL", "follows the seal") if self.sealed else None

    def row_problem(self, row):
        number, payload = row["seq"], inflated(row["payload"])
        chain_id, record_id = parse_uuid(row["chain_id"]), parse_uuid(row["record_id"])
        if row["row_hash"] != row_hash(self.previous, chain_id, number, record_id, payload):
            return number, "MUTATED", "not what was hashed"
        problem = payload_problem(row, payload)
        if problem:
            return number, "UNKNOWN_CHAIN" if "genesis" in problem else "MUTATED", problem
        if self.covered.get(number, {row["row_hash"]}) != {row["row_hash"]}:
            return number, "REWRITTEN", "a checkpoint has another hash"
        return None


def merkle(leaves):
    if len(leaves) < 2:
        return hashlib.sha256(b"\0" + leaves[0] if leaves else b"").digest()
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + merkle(leaves[:k]) + merkle(leaves[k:])).digest()


def root_of(ends):
    leaves = [chain.bytes + seq.to_bytes(8, "big", signed=True) + head + m.encode() for chain, seq, head, m in ends]
    return merkle(leaves).hex()


def ends_of(lines):
    return [(UUID(line["chain_id"]), line["seq"], bytes.fromhex(line["head"]), line["month"]) for line in lines]


def unsigned_ends(path, content):
    header, *lines = map(json.loads, content.splitlines())
    ends = ends_of(lines)
    if header["v"] != 1 or header["chains"] != len(ends) or header["root"] != root_of(ends):
        raise ValueError(f"{path} does not match its own root: it was cut or edited")
    return ends


def signed_lines(content):
    """The lines of a file of signed checkpoints; None if it is an unsigned one. One that is unfinished is None."""
    lines = content.splitlines(keepends=True)
    if not lines or not (b'"body"' in lines[0] and b'"signature"' in lines[0]):
        return None
    found = []
    for line in lines:
        try:
            content = json.loads(line.decode())
            if not has_types(content, LINE):
                raise ValueError("not a body and a signature")
            found.append({"body": content["body"].encode(), "signature": bytes.fromhex(content["signature"])})
        except MALFORMED:
            found.append({"body": b"", "signature": b""} if line.endswith(b"\n") else None)
    return found


def has_types(found, types):
    """Whether these are its keys, with values of exactly these types: in Python true is an integer."""
    return found.keys() == types.keys() and all(type(found[name]) in allowed for name, allowed in types.items())


def read_body(content):
    """The body of a signed checkpoint with its ends, or None if it is not as the format says."""
    try:
        body = json.loads(content.decode())
        ends = ends_of(body["ends"])
        is_right = (
            has_types(body, BODY)
            and body["v"] == 1
            and body["kind"] in ("written", "found", "key", "retired")
            and all(has_types(end, END) for end in body["ends"])
            and body["root"] == root_of(ends)
        )
        body["writer"] = UUID(body["writer"])
    except MALFORMED:
        return None
    return {**body, "pairs": ends} if is_right else None


class Keys:
    """The public keys that are trusted, by their ids."""

    def __init__(self, paths):
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        self.keys = {}
        for path in paths:
            blocks = PEM.findall(path.read_bytes())
            if not blocks:
                raise ValueError(f"{path} holds no public key in PEM")
            for block in blocks:
                self.add(load_pem_public_key(block).public_bytes_raw())

    def add(self, raw):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self.keys[hashlib.sha256(raw).hexdigest()[:16]] = Ed25519PublicKey.from_public_bytes(raw)

    def problem(self, body, row):
        from cryptography.exceptions import InvalidSignature

        if body["key_id"] not in self.keys:
            return "signed by a key that was not given"
        try:
            self.keys[body["key_id"]].verify(row["signature"], PREFIX + row["body"])
        except InvalidSignature:
            return "its signature is wrong"
        return None

    def trust_vouched(self, rows):
        named = [row for row in rows if row.get("kind", "key") == "key"]
        vouching = [(body, row) for row in named if (body := read_body(row["body"])) and body["kind"] == "key"]
        while True:
            before = len(self.keys)
            for body, row in vouching:
                if self.problem(body, row) is None:
                    self.add(bytes.fromhex(body["public_key"]))
            if len(self.keys) == before:
                return


class Signatures:
    """What trusted keys have signed, and what is wrong with checkpoints."""

    def __init__(self, keys):
        self.keys, self.problems, self.valid, self.remarks = keys, set(), [], []
        self.hashes, self.previous = defaultdict(set), {}

    def add(self, row, source):
        body, problem = read_body(row["body"]), "it is not a signed checkpoint"
        named = body or row
        where = f"checkpoint {named.get('number')} of writer {named.get('writer')} in {source}"
        if body:
            self.hashes[source].add(hashlib.sha256(row["body"]).hexdigest())
            columns = "writer" in row and (parse_uuid(row["writer"]), row["number"], row["kind"])
            is_other = columns and columns != (body["writer"], body["number"], body["kind"])
            problem = "its columns differ from what was signed" if is_other else self.keys.problem(body, row)
        if problem:
            self.problems.add(("BAD_SIGNATURE", where, problem))
            return
        self.valid.append(body)
        if body["previous"] != NO_CHECKPOINT:
            self.previous.setdefault(body["previous"], where)

    def finish(self):
        known = set().union(*self.hashes.values())
        for previous, where in self.previous.items():
            if previous not in known:
                self.problems.add(("CHECKPOINT_GONE", where, "the checkpoint before it is missing"))
        in_table = self.hashes[TABLE]
        for source, hashes in self.hashes.items():
            if hashes - in_table:
                self.problems.add(("CHECKPOINT_GONE", source, "the table lacks some of its checkpoints"))
        if not self.valid:
            self.problems.add(("UNSIGNED", TABLE, "no checkpoint is signed by a key that was given"))
        found = [{chain: seq for chain, seq, *_ in body["pairs"]} for body in self.valid if body["kind"] == "found"]
        common = set.intersection(*map(set, found)) if found else ()  # what a later one adds may be forged
        self.found = {chain: min(ends[chain] for ends in found) for chain in common}
        self.retired = [end for body in self.valid if body["kind"] == "retired" for end in body["pairs"]]
        self.latest, self.chains, self.closed = {}, {}, set()
        for body in self.valid:
            signed = (body["number"], body["at"])
            self.latest[body["writer"]] = max(self.latest.get(body["writer"], signed), signed)
            for (chain, seq, _, _), end in zip(body["pairs"], body["ends"], strict=True):
                if body["kind"] == "written":
                    mine = (seq, body["number"], body["at"], body["writer"])
                    self.chains[chain] = max(self.chains.get(chain, mine), mine, key=lambda each: each[:2])
                    self.closed |= {chain} if end["closed"] else set()

    def until(self, chain_id):
        """The last row that the chain's writer signed or, if it signed none, that was found before anybody signed."""
        return self.chains[chain_id][0] if chain_id in self.chains else self.found.get(chain_id, 0)

    def chain_problem(self, chain_id, chain):
        """The damage of rows that are not signed, or a remark (without a kind), or None."""
        if not chain.unsigned or not self.valid:
            return None
        remark = (chain.signed_seq + 1, None, f"{chain.unsigned} rows are not signed, the oldest of {chain.oldest}")
        if chain_id not in self.chains:
            if chain_id in self.found:
                return chain.signed_seq + 1, "UNSIGNED", "rows were added after the first signature"
            return 1, "UNKNOWN_CHAIN", "no writer has signed this chain"
        _, _, at, writer = self.chains[chain_id]
        earliest, latest = moved(self.latest[writer][1], -TWO_INTERVALS), moved(at, TWO_INTERVALS)
        if chain_id in self.closed or chain.sealed or chain.newest > latest or chain.newest < earliest:
            return chain.signed_seq + 1, "UNSIGNED", f"{chain.unsigned} rows are not signed by the writer of the chain"
        return remark


def moved(at, by):
    when = datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%f%z") + by
    return when.isoformat(timespec="milliseconds")[:23] + "Z"


def read_signatures(rows_of_table, files, keys):
    """`files`: their bytes, by name. They were read first: a service may have signed since."""
    signatures = Signatures(keys)
    rows = [(row, TABLE) for row in rows_of_table]
    for name, content in files.items():
        lines = signed_lines(content)
        if lines is None:
            signatures.problems.add(("BAD_SIGNATURE", name, "the checkpoint is not signed"))
        rows += [(row, name) for row in lines or () if row]
        if None in (lines or ()):
            signatures.remarks.append(f"the last line of {name} is unfinished")
    keys.trust_vouched([row for row, _ in rows])
    for row, source in rows:
        signatures.add(row, source)
    signatures.finish()
    return signatures


def covered_ends(files, signatures):
    covered = defaultdict(lambda: defaultdict(set))
    ends = [
        end for name, content in files.items() if signed_lines(content) is None for end in unsigned_ends(name, content)
    ]
    ends += [end for body in signatures.valid for end in body["pairs"]] if signatures else []
    for chain, seq, head, _ in ends:
        covered[chain][seq].add(head)
    return covered


def verify(path, export, files, keys, archives=()):
    """How many records and chains there are, what is wrong, and remarks. `archives`: exports of retired months."""
    files = {str(file): file.read_bytes() for file in files}
    chains = {}
    with closing(open_sqlite(path) if is_sqlite(path) else imported(path)) as audit:
        signed = signed_rows(export, audit if is_sqlite(path) else None)
        signatures = read_signatures(signed, files, keys) if keys else None
        covered = covered_ends(files, signatures)
        add_rows(chains, audit, covered, signatures)
    months = {}
    for archive in archives:
        with closing(imported(archive)) as retired:
            months[archive] = add_rows(chains, retired, covered, signatures)
    problems, remarks = judged(chains, covered, signatures, months)
    return sum(chain.rows for chain in chains.values()), len(chains), problems, remarks


def add_rows(chains, source, covered, signatures):
    """The months of the rows."""
    months = set()
    for row in table_of_sqlite(source, "audit_records", COLUMNS, "month, chain_id, seq"):
        months.add(row["month"])
        chain_id = parse_uuid(row["chain_id"])
        if chain_id not in chains:
            signed_seq = signatures.until(chain_id) if signatures else 0
            chains[chain_id] = Chain(row["month"], covered.get(chain_id, {}), signed_seq)
        chains[chain_id].add(row)
    return months


def judged(chains, covered, signatures, archives):
    """`archives`: by file, the months that it has. All chains that were retired with them must be there again."""
    of_checkpoints = sorted(signatures.problems) if signatures else []
    problems = [(kind, f"{where}, {words}") for kind, where, words in of_checkpoints]
    ends, archived = signatures.retired if signatures else (), set().union(*archives.values())
    missing = {chain: (seq, head) for chain, seq, head, month in ends if month not in archived}
    remarks = signatures.remarks if signatures else ["without a public key, no signature was checked"]
    for file, months in archives.items():
        if months:
            remarks.append(f"archive {file} has records of {', '.join(sorted(months))}")
        else:
            problems.append(("VANISHED", f"archive {file}: there is no record in it"))
    for chain_id in sorted(chains.keys() | covered.keys()):
        chain = chains.get(chain_id)
        if chain is None:
            seq = max(covered[chain_id])
            if {missing.get(chain_id)} == {(seq, head) for head in covered[chain_id][seq]}:
                remarks.append(f"chain {chain_id} was retired with {seq} rows")
            else:
                problems.append(("VANISHED", f"chain {chain_id}, row 1: the whole chain is missing"))
            continue
        found = chain.finish() or (signatures and signatures.chain_problem(chain_id, chain))
        if found:
            row, kind, words = found
            words = f"chain {chain_id}, row {row}: {words}"
            if kind:
                problems.append((kind, words))
            else:
                remarks.append(words)
    if covered and not chains:
        problems.append(("EMPTIED", "there is no record at all"))
    return problems, remarks


def say(line, file=None):
    """One line, whatever somebody wrote into the database: control characters and line breaks are escaped."""
    print("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line), file=file)


def main():
    sys.stdout.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(description="Verify an audit, independently of Normalcy.")
    parser.add_argument("audit", type=Path, help="the SQLite file, or the CSV of the table audit_records")
    parser.add_argument("--signed", type=Path, help="the CSV of the table audit_checkpoints")
    parser.add_argument("--archive", type=Path, action="append", default=[], help="the CSV of a retired month")
    parser.add_argument("--checkpoint", type=Path, action="append", default=[])
    parser.add_argument("--public-key", type=Path, action="append", default=[])
    given = parser.parse_args()
    try:
        keys = Keys(given.public_key) if given.public_key else None
        count, chains, problems, remarks = verify(given.audit, given.signed, given.checkpoint, keys, given.archive)
        for words in remarks:
            say(f"remark: {words}")
        for kind, words in problems:
            say(f"{kind}: {words}")
        say(f"{count} records in {chains} chains: {'damaged' if problems else 'intact'}")
    except Exception as error:  # also of printing, which must not look like damage
        say(f"Could not check: {error}", sys.stderr)
        return 2
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
