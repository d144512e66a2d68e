"""The one definition of every request and response field: type, unit, range, description, example.

`requests` validates what callers send, `errors` explains what is wrong with it, `fields` makes the definitions
available to tables, the command line and the list of limits. `answers`, `lookups` and `problem` define responses.
"""
