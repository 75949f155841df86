#!/bin/sh
# Runs once, when PostgreSQL's data directory is made: a role that owns its database and nothing else. Migrations need no more than that.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\set password `cat /run/postgres-secrets/oncepay`
CREATE ROLE oncepay LOGIN PASSWORD :'password';
CREATE DATABASE oncepay OWNER oncepay;
REVOKE CONNECT, TEMPORARY ON DATABASE oncepay FROM PUBLIC;
SQL
