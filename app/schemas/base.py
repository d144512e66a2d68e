"""What all schemas share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

REQUEST_ID = r"^[A-Za-z0-9._-]{1,64}$"
PLAIN_TEXT = r"^[^\u0000-\u001f\u007f-\u009f]*$"  # no control characters
SHA256 = r"^[0-9a-f]{64}$"

RequestId = Annotated[
    str, Field(description="As in `X-Request-ID`.", pattern=REQUEST_ID, examples=["echo-lab-7.2026-11-15"])
]


class Schema(BaseModel):
    """Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class ResponseBody(Schema):
    request_id: RequestId


def plain(schema: Schema) -> dict[str, Any]:
    """As dicts and lists, ready for JSON, without fields that were not set.

    Without warnings: a damaged audit record shows what the database holds now, whatever its type.
    """
    return schema.model_dump(by_alias=True, exclude_unset=True, warnings=False)
