#!/bin/sh
# Makes the secrets that docker-compose.yml hands out as files. Each is made once: what is there stays as it is.
set -eu
folder=${1:-secrets}
umask 077
mkdir -p "$folder"

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
keep() { [ -s "$folder/$1" ] || printf '%s' "$2" > "$folder/$1"; }

keep database_admin_password "$(random)"  # of the superuser, which nothing but the making of the database uses
for login in manager service; do
    keep "database_${login}_password" "$(random)"
    password=$(cat "$folder/database_${login}_password")
    keep "database_${login}_url" "postgresql://normalcy_${login}:${password}@database:5432/normalcy"
done
keep subject_key "$(random)"

# The folder keeps others on this machine out; inside a container the files are read by users with other numbers.
chmod 444 "$folder"/*
