#!/bin/sh
# Runs once, inside PostgreSQL's container, when the database is created. The service logs in as a member of the writer
# and of the auditor: it adds and reads records, and can neither change nor remove one. Migrations and key management
# use the manager's login. Rights that PostgreSQL gives to everybody and that the service does not need are revoked:
# temporary objects, which could take the names of our tables, new objects in the schema, and large objects.
# Safe to repeat, also on a database that was migrated before this login existed.
set -eu
if [ -z "${PGPASSWORD:-}" ] && [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export PGPASSWORD
fi
password=$(cat "${SERVICE_PASSWORD_FILE:-/run/secrets/database_service_password}")
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 --set password="$password" <<'SQL'
REVOKE TEMPORARY ON DATABASE :"DBNAME" FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) FROM PUBLIC;
SELECT format('CREATE ROLE %I NOLOGIN', missing) FROM unnest(ARRAY['normalcy_writer', 'normalcy_auditor']) AS missing
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = missing) \gexec
SELECT 'CREATE ROLE normalcy_service LOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'normalcy_service') \gexec
ALTER ROLE normalcy_service PASSWORD :'password';
GRANT normalcy_writer, normalcy_auditor TO normalcy_service;
SQL
