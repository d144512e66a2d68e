#!/bin/sh
# Runs once, inside PostgreSQL's container, when the database is created. Migrations and key management use a login that
# owns the database and its tables through normalcy_owner, and nothing else: it is not a superuser and cannot create
# roles. Safe to repeat, also on a database that is older than this login.
set -eu
export PGPASSWORD="${PGPASSWORD:-$(cat "$POSTGRES_PASSWORD_FILE")}"
password=$(cat "${MANAGER_PASSWORD_FILE:-/run/secrets/database_manager_password}")
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 --set password="$password" <<'SQL'
SELECT 'CREATE ROLE normalcy_owner NOLOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'normalcy_owner') \gexec
SELECT 'CREATE ROLE normalcy_manager LOGIN IN ROLE normalcy_owner'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'normalcy_manager') \gexec
ALTER ROLE normalcy_manager PASSWORD :'password';
ALTER DATABASE :"DBNAME" OWNER TO normalcy_owner;
SQL
