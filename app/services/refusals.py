"""What a running service refuses beside the tree of `app.errors`, whose leaves these are."""

from app.errors import NormalcyError


class UnknownRecord(NormalcyError):
    def __init__(self) -> None:
        super().__init__("The audit holds no such record.")


class NoModelLoaded(NormalcyError):
    def __init__(self) -> None:
        super().__init__("No model is loaded.")


class ActivationRefused(NormalcyError):
    """The version on the shelf keeps serving."""

    def __init__(self, reason: str) -> None:
        self.reason = f"The version was not activated, and the one before it keeps serving: {reason}"
        super().__init__(self.reason)
