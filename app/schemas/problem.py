"""Problem details, RFC 9457."""

from pydantic import ConfigDict, Field

from app.schemas.base import Described, Traced


class FieldFault(Described):
    code: str
    field: str = Field(description="Dotted path, as `measurements[1].diameter_mm`; empty: the body as a whole.")
    message: str = Field(description="The field, its unit, what is allowed. Never what was sent.")


class Problem(Traced):
    """Members beyond these may be there, as RFC 9457 allows: readiness tells its checks in them."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="Leads to the explanation of this kind of problem.")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    errors: list[FieldFault] = Field(default_factory=list, description="Every fault at once.")
