#!/bin/sh
# Guess:  a jsonb value that PostgreSQL stores, prints and compares can be tested by the operator @>, too.
# Seen:   arrays that are nested 9,000 deep are stored, printed and equal to themselves; @> with the value itself fails with
#         "stack depth limit exceeded", with default settings, in the query that reads the row, not in the one that
#         wrote it. At 5,000 all four work.
# With:   PostgreSQL 15.20 (Debian 12), x86-64, max_stack_depth 2MB.
# Source: JsonbDeepContains in src/backend/utils/adt/jsonb_util.c recurses with larger frames than the parser in
#         src/common/jsonapi.c.
# So:     bound the depth of what is stored far below what the parser takes.
set -eu
folder=$(mktemp -d)
as= # PostgreSQL refuses to run as root
[ "$(id -u)" != 0 ] || { chown daemon "$folder"; as='setpriv --reuid=daemon --regid=daemon --clear-groups'; }
trap '$as "$bin/pg_ctl" -D "$folder/data" -m immediate stop >pg_ctl.log 2>&1 || true; cd /; rm -rf "$folder"' EXIT
chmod 755 "$folder"
cd "$folder"
apt-get download postgresql-15=15.20-0+deb12u1 postgresql-client-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
bin=$folder/root/usr/lib/postgresql/15/bin
LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name libpq.so.5)")
export LD_LIBRARY_PATH
$as "$bin/initdb" -D data -A trust -U someone -N >initdb.log
$as "$bin/pg_ctl" -D data -o "-k $folder -c listen_addresses=" -l data/log -w start >start.log
ask() { "$bin/psql" -XAtqh "$folder" -U someone -d postgres -c "$1" 2>&1 | head -n 1; }
for depth in 5000 9000; do
    ask 'DROP TABLE IF EXISTS t' >drop.log
    ask "CREATE TABLE t AS SELECT (repeat('[', $depth) || repeat(']', $depth))::jsonb AS v"
    echo "$depth: printed $(ask 'SELECT length(v::text) FROM t'), equal $(ask 'SELECT v = v FROM t'), contains: $(ask 'SELECT v @> v FROM t')"
done | tee seen
cat >expected <<'END'
5000: printed 10000, equal t, contains: t
9000: printed 18000, equal t, contains: ERROR:  stack depth limit exceeded
END
cmp seen expected
