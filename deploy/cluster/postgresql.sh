#!/bin/sh
# A server of PostgreSQL with TLS, in the image `postgres`. With PRIMARY it is a standby of that
# server: at its first start it copies it.
set -eu
# The first process of a container ends by no signal that it does not take.
trap 'exit 143' INT TERM
own=/var/lib/postgresql/own
install -d -o postgres -g postgres -m 0700 "$own"
# PostgreSQL takes a key only from its own user, and only if nobody else may read it.
install -o postgres -g postgres -m 0600 /etc/secure-streams/* "$own"
# The image runs the statements of this folder at its first start, as that user.
install -o postgres -g postgres -m 0600 "$own/roles.sql" /docker-entrypoint-initdb.d/
printf '*:*:*:replicator:%s\n' "$(cat "$own/replicator.password")" >"$own/pgpass"
chown postgres:postgres "$own/pgpass"
chmod 0600 "$own/pgpass"
if [ -n "${PRIMARY:-}" ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    install -d -o postgres -g postgres -m 0700 "$PGDATA"
    until gosu postgres pg_basebackup --pgdata="$PGDATA" --write-recovery-conf --wal-method=stream \
        --checkpoint=fast --dbname="host=$PRIMARY user=replicator application_name=$(hostname) \
passfile=$own/pgpass sslmode=verify-full sslrootcert=$own/ca.pem"; do
        sleep 2
    done
fi
export POSTGRES_PASSWORD_FILE="$own/superuser.password"
exec docker-entrypoint.sh postgres \
    -c ssl=on -c ssl_cert_file="$own/server.pem" -c ssl_key_file="$own/server.key" \
    -c hba_file=/opt/secure-streams/pg_hba.conf -c password_encryption=scram-sha-256
