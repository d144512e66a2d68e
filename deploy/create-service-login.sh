#!/bin/sh
# Runs once, inside PostgreSQL's container, when the database is made. The service logs in as a member of the writer
# and of the auditor: it adds records and reads them, and can neither change nor remove one. Migrations and keys take
# the administrator's login. What PostgreSQL lets everybody do and the service has no use for is taken away: temporary
# objects, which can hide tables behind their names, new objects in the schema, and large objects.
set -eu
password=$(cat "${SERVICE_PASSWORD_FILE:-/run/secrets/database_service_password}")
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 --set password="$password" <<'SQL'
CREATE ROLE normalcy_writer NOLOGIN;
CREATE ROLE normalcy_auditor NOLOGIN;
CREATE ROLE normalcy_service LOGIN PASSWORD :'password' IN ROLE normalcy_writer, normalcy_auditor;
REVOKE TEMPORARY ON DATABASE :"DBNAME" FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) FROM PUBLIC;
SQL
