"""How a diameter was measured. Inner-edge diameters are about 3 mm smaller than leading-edge ones."""

from dataclasses import dataclass, fields
from typing import Literal

Edge = Literal["leading", "inner", "outer"]
Phase = Literal["end-diastole", "mid-systole"]
Modality = Literal["TTE", "CT", "MR"]


@dataclass(frozen=True, slots=True)
class Convention:
    """None means that the caller did not state it."""

    edge: Edge | None = None
    phase: Phase | None = None
    modality: Modality | None = None

    def differences(self, other: "Convention") -> tuple[str, ...]:
        """The names of the parts that both state and state differently."""
        if self == other:
            return ()
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in PARTS)
        return tuple(name for name, mine, theirs in pairs if mine and theirs and mine != theirs)

    @property
    def not_stated(self) -> tuple[str, ...]:
        return tuple([name for name in PARTS if getattr(self, name) is None])


PARTS = tuple(field.name for field in fields(Convention))
