"""The only package with SQL: tables, connections, and queries on records, keys and activations (PostgreSQL, SQLite).

    engine.py         the database of this process: connection pool, transactions, timeouts
    tables.py         the tables, defined once for both databases
    records.py        queries on audit records            keys.py   API keys        activations.py   current versions
    checkpoints.py    signed checkpoints
    appender.py       what the audit writer needs of a database, and which commits are durable
    postgres.py       connections and appender on PostgreSQL
    sqlite.py         the database file, its serve lock, and the appender on SQLite
    migrate.py        Alembic migrations and the monthly partitions
    roles.py          the PostgreSQL roles and their grants
    schema_checks.py  start-up check: triggers, functions, keys and settings are as the migrations left them
    login_rights.py   start-up check: the service's PostgreSQL login can do no more than it should

What a record means and how records are chained is in `app.audit`. To add a table, define it in `tables.py`, write the
next revision in `migrations/versions`, and give its queries a file here.
"""
