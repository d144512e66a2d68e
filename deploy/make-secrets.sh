#!/bin/sh
# Creates the secrets that docker-compose.yml passes as files. Existing ones are not changed.
set -eu
folder=${1:-secrets}
umask 077
mkdir -p "$folder"

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
create() { [ -s "$folder/$1" ] || printf '%s' "$2" > "$folder/$1"; }

create database_admin_password "$(random)"  # of the superuser, which is used only to create the database
for login in manager service; do
    create "database_${login}_password" "$(random)"
    password=$(cat "$folder/database_${login}_password")
    create "database_${login}_url" "postgresql://normalcy_${login}:${password}@database:5432/normalcy"
done
create subject_key "$(random)"
create audit_key "$(random)"  # used if NORMALCY_AUDIT_ENCRYPTION is on
create signing_key "$(openssl genpkey -algorithm ed25519)"
create grafana_admin_password "$(random)"

# The folder is closed to other users of this machine; inside a container, users with other ids read the files.
chmod 444 "$folder"/*
