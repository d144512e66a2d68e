"""Use cases, one module each, named by verbs: score, replay, activate, verify, train, ...

A function receives a `Runtime` and the `Caller`, or settings if it is for a command. It returns what the response or
the command shows, after recording what must be recorded. HTTP is in `app.web`, terminal output in `app.cli`.
"""
