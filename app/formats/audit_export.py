"""Audit records for export, one line each: as CSV, or as FHIR R4 AuditEvent.

CSV has the whole content of a record, patients' values included; `input` and `output` are JSON, in one cell each,
because their keys depend on the kind of record. An AuditEvent says who did what, when, with which model.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from app.files import csv_lines

Json = dict[str, Any]

HEADER = (
    "record_id",
    "request_id",
    "item",
    "kind",
    "at",
    "principal",
    "route",
    "status",
    "site",
    "version",
    "model_sha256",
    "input",
    "output",
    "chain_month",
    "chain_id",
    "chain_seq",
    "row_hash",
    "damaged",  # true: the row is not what was hashed; if its payload cannot be read, only the other columns are filled
    "damage",  # its kind, and a description
    "content",  # clear, decrypted, erased or unreadable: how input and output are stored
)
_JSON = ("input", "output")


def csv_header() -> bytes:
    return csv_lines([HEADER])


def csv_line(record: Mapping[str, Any]) -> bytes:
    """`record` is the payload with `damaged` and `chain`, as `app.audit.lookup` returns it."""
    model, chain = record.get("model") or {}, record["chain"]
    cells = {
        **record,
        **{name: _json(record.get(name)) for name in _JSON},
        "site": model.get("site"),
        "version": model.get("version"),
        "model_sha256": model.get("sha256"),
        "chain_month": chain["month"],
        "chain_id": chain["id"],
        "chain_seq": chain["seq"],
        "row_hash": chain["row_hash"],
        "damaged": "true" if record["damaged"] else None,
        "damage": "{kind}: {detail}".format(**record["damage"]) if record["damaged"] else None,
    }
    return csv_lines([[cells.get(name) for name in HEADER]])


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


DICOM = "http://dicom.nema.org/resources/ontology/DCM"
TERMS = "http://terminology.hl7.org/CodeSystem/"
OWN = "urn:normalcy:"  # our own identifiers and codes


def _coding(system: str, code: str, display: str) -> Json:
    return {"system": system, "code": code, "display": display}


REST = _coding(TERMS + "audit-event-type", "rest", "RESTful Operation")
ACTIVITY = _coding(DICOM, "110100", "Application Activity")
LOG_USED = _coding(DICOM, "110101", "Audit Log Used")
DETAILED_TYPES = {
    "genesis": _coding(DICOM, "110120", "Application Start"),
    "seal": _coding(DICOM, "110121", "Application Stop"),
}
ACTIONS = {"read": "R", "key": "U", "activation": "U"}
EXECUTE = "E"

SUCCESS, MINOR_FAILURE, SERIOUS_FAILURE = "0", "4", "8"
SERVER_ERROR = 500

PERSON = _coding(TERMS + "audit-entity-type", "1", "Person")
SYSTEM_OBJECT = _coding(TERMS + "audit-entity-type", "2", "System Object")
PATIENT = _coding(TERMS + "object-role", "1", "Patient")
SOURCE = {
    "observer": {"display": "Normalcy"},
    "type": [_coding(TERMS + "security-source-type", "4", "Application Server")],
}
UNREADABLE = {"kind": "UNREADABLE", "detail": "its content is not valid for its kind"}


def fhir_line(record: Mapping[str, Any]) -> bytes:
    try:
        event = audit_event(record)
    except (AttributeError, KeyError, TypeError, ValueError):  # correctly hashed, but not written by this program
        event = audit_event({**record, "damaged": True, "damage": UNREADABLE})
    return msgspec.json.encode(event) + b"\n"


def audit_event(record: Mapping[str, Any]) -> Json:
    """`record` is the payload with `damaged` and `chain`, as `app.audit.lookup` returns it."""
    kind = record["kind"]
    outcome, description = _outcome(record)
    event = {
        "resourceType": "AuditEvent",
        "id": record["record_id"],
        "type": _type(kind, record.get("route")),
        "subtype": [_coding(OWN + "audit-kind", kind, kind), *_standard_subtype(kind)],
        "action": ACTIONS.get(kind, EXECUTE),
        "recorded": record["at"],
        "outcome": outcome,
        "outcomeDesc": description,
        "agent": [_agent(record["principal"])],
        "source": SOURCE,
        "entity": [_record_entity(record), *_model_entity(record.get("model")), *_patient_entity(record)],
    }
    return {name: value for name, value in event.items() if value is not None}  # FHIR has no null


def _type(kind: str, route: str | None) -> Json:
    """A route that starts with a slash is one of HTTP; others are commands."""
    if kind == "read":
        return LOG_USED
    return REST if route and route.startswith("/") else ACTIVITY


def _standard_subtype(kind: str) -> list[Json]:
    return [DETAILED_TYPES[kind]] if kind in DETAILED_TYPES else []


def _outcome(record: Mapping[str, Any]) -> tuple[str, str | None]:
    if record["damaged"]:
        return SERIOUS_FAILURE, "The stored record is damaged. {kind}: {detail}.".format(**record["damage"])
    if record["kind"] != "refusal":
        return SUCCESS, None
    status, output = record.get("status"), record.get("output") or {}
    why = ", ".join(dict.fromkeys([output.get("problem", "refused"), *output.get("errors", ())]))
    statuses = [status] if status else sorted(int(each) for each in output.get("statuses", ()))
    is_serious = any(each >= SERVER_ERROR for each in statuses)
    description = f"status {', '.join(map(str, statuses)) or 'unknown'}: {why}"
    if "count" in output:  # an aggregated refusal
        description += f"; {output['count']} times from {output['from']} to {output['to']}"
    return (SERIOUS_FAILURE if is_serious else MINOR_FAILURE), description


def _agent(principal: str) -> Json:
    """A key's id, a token's subject, or the service itself, which acted without a request."""
    return {
        "who": {"identifier": {"system": OWN + "principal", "value": principal}},
        "requestor": principal != "service",
    }


def _record_entity(record: Mapping[str, Any]) -> Json:
    chain = record["chain"]
    details = {
        "request_id": record.get("request_id"),
        "item": record.get("item"),
        "route": record.get("route"),
        "status": record.get("status"),
        "chain_id": chain["id"],
        "chain_seq": chain["seq"],
        "row_hash": chain["row_hash"],
    }
    given = [{"type": name, "valueString": str(value)} for name, value in details.items() if value is not None]
    identifier = {"system": OWN + "record", "value": record["record_id"]}
    return {"what": {"identifier": identifier}, "type": SYSTEM_OBJECT, "detail": given}


def _model_entity(model: Mapping[str, str] | None) -> list[Json]:
    if model is None:
        return []
    identifier = {"system": OWN + "model", "value": f"{model['site']} {model['version']}"}
    digest = {"type": "sha256", "valueString": model["sha256"]}
    return [{"what": {"identifier": identifier}, "type": SYSTEM_OBJECT, "detail": [digest]}]


def _patient_entity(record: Mapping[str, Any]) -> list[Json]:
    """The stored hash of the patient reference, if the caller sent one. Left out if the record is damaged."""
    subject = (record.get("input") or {}).get("subject")
    if not subject or record["damaged"]:
        return []
    identifier = {"system": f"{OWN}subject:{subject['key_id']}", "value": subject["hmac_sha256"]}
    return [{"what": {"identifier": identifier}, "type": PERSON, "role": PATIENT}]
