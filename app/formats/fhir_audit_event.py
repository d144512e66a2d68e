"""Audit records as FHIR R4 AuditEvent, one JSON object per line: who did what, when, with which model.

Meant for a hospital's audit repository, so the clinical values stay at home: neither input nor output is told, but
for the keyed hash of the patient reference. The record's place and hash in its chain are, so that an event can be
held against the database.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

Json = dict[str, Any]

DICOM = "http://dicom.nema.org/resources/ontology/DCM"
TERMS = "http://terminology.hl7.org/CodeSystem/"
OWN = "urn:normalcy:"  # identifiers and codes that have no meaning elsewhere


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


STRANGE = {"kind": "UNREADABLE", "detail": "its content is not that of a record of its kind"}


def line(record: Mapping[str, Any]) -> bytes:
    try:
        event = audit_event(record)
    except (AttributeError, KeyError, TypeError, ValueError):  # hashed as it stands, and by no program of ours
        event = audit_event({**record, "damaged": True, "damage": STRANGE})
    return msgspec.json.encode(event) + b"\n"


def audit_event(record: Mapping[str, Any]) -> Json:
    """Of a record as the audit tells it: what the payload says, and `chain`, its place."""
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
        "entity": [_entry(record), *_model(record.get("model")), *_patient(record)],
    }
    return {name: value for name, value in event.items() if value is not None}  # FHIR knows no null


def _type(kind: str, route: str | None) -> Json:
    """A route that is an address was asked for over HTTP; others are commands."""
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
    status, told = record.get("status"), record.get("output") or {}
    why = ", ".join(dict.fromkeys([told.get("problem", "refused"), *told.get("errors", ())]))
    statuses = [status] if status else sorted(int(each) for each in told.get("statuses", ()))
    is_serious = any(each >= SERVER_ERROR for each in statuses)
    description = f"status {', '.join(map(str, statuses)) or 'unknown'}: {why}"
    if "count" in told:  # a sum
        description += f"; {told['count']} times from {told['from']} to {told['to']}"
    return (SERIOUS_FAILURE if is_serious else MINOR_FAILURE), description


def _agent(principal: str) -> Json:
    """A key's id, a token's subject, or the service itself, which nobody asked."""
    return {
        "who": {"identifier": {"system": OWN + "principal", "value": principal}},
        "requestor": principal != "service",
    }


def _entry(record: Mapping[str, Any]) -> Json:
    chain = record["chain"]
    told = {
        "request_id": record.get("request_id"),
        "item": record.get("item"),
        "route": record.get("route"),
        "status": record.get("status"),
        "chain_id": chain["id"],
        "chain_seq": chain["seq"],
        "row_hash": chain["row_hash"],
    }
    details = [{"type": name, "valueString": str(value)} for name, value in told.items() if value is not None]
    identifier = {"system": OWN + "record", "value": record["record_id"]}
    return {"what": {"identifier": identifier}, "type": SYSTEM_OBJECT, "detail": details}


def _model(model: Mapping[str, str] | None) -> list[Json]:
    if model is None:
        return []
    identifier = {"system": OWN + "model", "value": f"{model['site']} {model['version']}"}
    digest = {"type": "sha256", "valueString": model["sha256"]}
    return [{"what": {"identifier": identifier}, "type": SYSTEM_OBJECT, "detail": [digest]}]


def _patient(record: Mapping[str, Any]) -> list[Json]:
    """Only if the caller named one, and then by the hash that the audit keeps. Of a damaged record left out."""
    subject = (record.get("input") or {}).get("subject")
    if not subject or record["damaged"]:
        return []
    identifier = {"system": f"{OWN}subject:{subject['key_id']}", "value": subject["hmac_sha256"]}
    return [{"what": {"identifier": identifier}, "type": PERSON, "role": PATIENT}]
