"""Use cases, named by verbs. Each takes what it needs: models, values, `now`; each returns values or raises.

`score` answers readings (every protocol is another door to it), `numbers` computes their columns, `train` makes
and publishes a version. To add one, write a function that a door can call with parsed values and whose answer a
door can render; HTTP, terminals and their formats stay outside.
"""
