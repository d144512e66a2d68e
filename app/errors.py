"""What can go wrong, in words of medicine and of models, never of HTTP.

    NormalcyError
    ├── UnknownSite             no model was ever published for this site
    ├── UnknownVersion          the site has no such version
    ├── ArtefactRefused         a stored model is not what its digest says (names the file)
    ├── VersionExists           a published version is never overwritten
    ├── TableRefused            a table of people cannot be used (every problem, with rows and columns)
    ├── GateFailed              a trained model did not pass its gates (which, and by how much)
    ├── TrainingFailed          the optimiser gave no usable model
    ├── NumbersNotTrusted       the solver could not verify its own answer
    └── NotInstalled            this command needs parts that a serving installation leaves out

Each protocol has one table that turns the leaves into its own answers.
"""

from collections.abc import Sequence


class NormalcyError(Exception):
    """Every failure that a user can meet. Its text is one clear sentence."""


class UnknownSite(NormalcyError):
    def __init__(self, site: str) -> None:
        super().__init__(f"No model is published for the site {site}.")
        self.site = site


class UnknownVersion(NormalcyError):
    def __init__(self, site: str, version: str) -> None:
        super().__init__(f"The site {site} has no model version {version}.")
        self.site, self.version = site, version


class ArtefactRefused(NormalcyError):
    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file, self.reason = file, reason


class VersionExists(NormalcyError):
    def __init__(self, site: str, version: str) -> None:
        super().__init__(f"{site} {version} is published already; a version is never overwritten. Choose a new one.")
        self.site, self.version = site, version


class TableRefused(NormalcyError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("The table cannot be used. " + " ".join(problems))
        self.problems = tuple(problems)


class GateFailed(NormalcyError):
    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("The model is not published. " + " ".join(failures))
        self.failures = tuple(failures)


class TrainingFailed(NormalcyError):
    pass


class NumbersNotTrusted(NormalcyError):
    pass


class NotInstalled(NormalcyError):
    def __init__(self, what: str) -> None:
        super().__init__(f"This command needs {what}: install the training environment with `make train-env`.")
