#!/bin/sh
# Guess:  websearch_to_tsquery takes whatever a visitor writes in a search box: its manual says that it never raises a
#         syntax error.
# Seen:   it raises another one. A hyphen is "not", and those in a row are nested. Of 32 nothing is left, or the word behind
#         them, denied as often; at 33, as somebody writes who draws a line, the function fails with "tsquery stack too
#         small", SQLSTATE XX000, which is the class of internal errors.
# With:   PostgreSQL 15.20 (Debian 12).
# Source: pushOpStack in src/backend/utils/adt/tsquery.c has room for 32 operators; chapter 12.3.2 of the manual.
# So:     bound or clean what visitors write before it comes there, or catch the error: it is none of the server's.
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
ask() { "$bin/psql" -XAtqh "$folder" -U someone -d postgres -v VERBOSITY=verbose -c "SET client_min_messages = error; SELECT websearch_to_tsquery('english', $1)" 2>&1 | head -n 1; }
for hyphens in 1 2 32 33; do
    echo "$hyphens: $(ask "repeat('-', $hyphens)") | $(ask "repeat('-', $hyphens) || 'word'")"
done | tee seen
cat >expected <<'END'
1:  | !'word'
2:  | !!'word'
32:  | !!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!'word'
33: ERROR:  XX000: tsquery stack too small | ERROR:  XX000: tsquery stack too small
END
cmp seen expected
