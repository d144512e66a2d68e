"""The only SQL: tables, connections, and the queries on records, keys and activations, on PostgreSQL and on SQLite.

    tables.py        the tables, once, for both databases        engine.py    the database of this process: read, write
    appender.py      what the audit writer needs of a database   postgres.py, sqlite.py   the two that give it
    migrate.py       Alembic without a file of its own           partitions.py, roles.py  what only PostgreSQL has
    readiness.py, filesystem.py   what refuses a start           lock.py      one serving process per SQLite file
    durability.py    whether an acknowledged commit survives a crash
    definitions.py   functions and triggers                      guards.py    whether they are still the same
    rights.py        what a login may do                         catalogue.py PostgreSQL's tables about ours
    records.py, keys.py, activations.py                          the queries

Nothing here knows what a record means or how records are chained; that is the room `audit`. To add a table, add it to
`tables.py`, write the next revision in `migrations/versions`, and give its queries a file here.
"""
