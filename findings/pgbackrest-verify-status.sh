#!/bin/sh
# Guess:  `pgbackrest verify` ends with another status than 0 when a file of a backup or of the log is gone, as checkers do.
# Seen:   it ends with 0 in all cases. A file of a backup that is gone is in its text ("status: error"). A segment of the log that
#         is gone from the middle, which a restore needs, is not even there: the text has no error.
# With:   pgBackRest 2.45 (Debian 12).
# Source: verifyProcess in src/command/verify/verify.c makes the text; cmdVerify prints it, and the status stays that of a
#         command that has run.
# So:     read the text (--output=text), not the status, and compare the names of the segments with each other
#         (pgbackrest repo-ls --recurse).
set -eu
folder=$(mktemp -d)
as= # PostgreSQL refuses to run as root
[ "$(id -u)" != 0 ] || { chown daemon "$folder"; as='setpriv --reuid=daemon --regid=daemon --clear-groups'; }
trap '$as "$bin/pg_ctl" -D "$folder/data" -m immediate stop >pg_ctl.log 2>&1 || true; cd /; rm -rf "$folder"' EXIT
chmod 755 "$folder"
cd "$folder"
apt-get download pgbackrest=2.45-1 postgresql-15=15.20-0+deb12u1 postgresql-client-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
bin=$folder/root/usr/lib/postgresql/15/bin
LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name libpq.so.5)")
export LD_LIBRARY_PATH
cat >conf <<END
[global]
repo1-path=$folder/repository
repo1-retention-full=2
start-fast=y
log-level-file=off
lock-path=$folder/locks
[main]
pg1-path=$folder/data
pg1-socket-path=$folder
pg1-user=someone
END
program=$folder/root/usr/bin/pgbackrest
backrest() { $as "$program" --config="$folder/conf" --stanza=main --log-level-console=off --log-level-stderr=warn "$@"; }
ask() { "$bin/psql" -XAtqh "$folder" -U someone -d postgres -c "$1"; }
$as "$bin/initdb" -D data -A trust -U someone -N >initdb.log
$as "$bin/pg_ctl" -D data -o "-k $folder -c listen_addresses= -c archive_mode=on" -l data/log -w start >start.log
backrest stanza-create
ask "ALTER SYSTEM SET archive_command = '$program --config=$folder/conf --stanza=main archive-push %p'"
ask 'SELECT pg_reload_conf()' >reload.log
backrest backup 2>backup.log
ask 'CREATE TABLE t (n int)'
for _ in 1 2 3; do
    ask 'INSERT INTO t VALUES (1)'
    ask 'SELECT pg_switch_wal()' >switch.log
done
backrest check
verify() {
    status=0
    backrest verify --output=text >text || status=$?
    if grep -q 'status: error' text; then echo "$1: error, status $status"; else echo "$1: nothing, status $status"; fi
}
{
    verify 'all is there'
    segment=$(find repository/archive -name '0000000100000000*-*' | sort | tail -n 3 | head -n 1)
    mv "$segment" segment
    verify 'a segment of the log is gone'
    mv segment "$segment"
    rm "$(find repository/backup -name '1259*' | sort | head -n 1)"
    verify 'a file of the backup is gone'
} | tee seen
cat >expected <<'END'
all is there: nothing, status 0
a segment of the log is gone: nothing, status 0
a file of the backup is gone: error, status 0
END
cmp seen expected
