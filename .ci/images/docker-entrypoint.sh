#!/usr/bin/env bash
# Of the public image's script: what deploy/cluster uses. Root hands over to the server's user, which
# makes the database where there is none, and runs the statements that are mounted.
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 0700 "$PGDATA"
    install -d -o postgres -g postgres -m 3775 /var/run/postgresql
    exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE"
    pg_ctl --wait start -o "$(printf '%q ' "${@:2}" -c listen_addresses=)"
    for file in /docker-entrypoint-initdb.d/*.sql; do
        [ ! -e "$file" ] || psql --no-psqlrc --set ON_ERROR_STOP=1 --no-password --file "$file"
    done
    pg_ctl --wait --mode=fast stop
fi
exec "$@"
