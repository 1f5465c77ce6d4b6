#!/bin/sh
# Guess:  in a pipeline a statement before BEGIN is on its own: ROLLBACK undoes what stands between the two. SET LOCAL
#         outside of a transaction has no effect, as its warning says.
# Seen:   what a pipeline has run since its beginning is one transaction already. BEGIN takes it in without a warning, and
#         ROLLBACK undoes an INSERT that stood before BEGIN and whose result was good. SET LOCAL warns that it "can
#         only be used in transaction blocks", and holds for the statements behind it, until the end of the pipeline.
# With:   PostgreSQL 15.20 (Debian 12), server and libpq.
# Source: BeginTransactionBlock and WarnNoTransactionBlock in src/backend/access/transam/xact.c; exec_execute_message in
#         src/backend/tcop/postgres.c.
# So:     put PQpipelineSync before BEGIN; count a statement as done only behind the synchronisation that follows it.
set -eu
folder=$(mktemp -d)
as= # PostgreSQL refuses to run as root
[ "$(id -u)" != 0 ] || { chown daemon "$folder"; as='setpriv --reuid=daemon --regid=daemon --clear-groups'; }
trap '$as "$bin/pg_ctl" -D "$folder/data" -m immediate stop >pg_ctl.log 2>&1 || true; cd /; rm -rf "$folder"' EXIT
chmod 755 "$folder"
cd "$folder"
apt-get download postgresql-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1 libpq-dev=15.20-0+deb12u1 >apt.log 2>&1 || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
bin=$folder/root/usr/lib/postgresql/15/bin
LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name libpq.so.5)")
export LD_LIBRARY_PATH
cat >run.c <<'END'
#include <libpq-fe.h>
#include <stdio.h>

static void notice(void *unused, const char *text)
{
    (void)unused;
    printf("  %s", text);
}

static void pipeline(PGconn *connection, const char *const statements[], int count)
{
    PQenterPipelineMode(connection);
    for (int i = 0; i < count; i++)
        PQsendQueryParams(connection, statements[i], 0, NULL, NULL, NULL, NULL, 0);
    PQpipelineSync(connection);
    for (int i = 0; i < count; i++) {
        PGresult *result = PQgetResult(connection);
        printf("%s: %s\n", statements[i], PQntuples(result) ? PQgetvalue(result, 0, 0) : PQresStatus(PQresultStatus(result)));
        PQclear(result);
        PQgetResult(connection);
    }
    PQclear(PQgetResult(connection));
    PQexitPipelineMode(connection);
}

int main(int argc, char **words)
{
    PGconn *connection = PQconnectdb(words[argc - 1]);
    PQsetNoticeProcessor(connection, notice, NULL);
    PQclear(PQexec(connection, "CREATE TABLE t (n int)"));
    const char *const rows[] = {"INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2)", "ROLLBACK", "INSERT INTO t VALUES (3)"};
    pipeline(connection, rows, 5);
    const char *const count[] = {"SELECT string_agg(n::text, ' ') FROM t"};
    pipeline(connection, count, 1);
    const char *const setting[] = {"SET LOCAL work_mem = '7MB'", "SHOW work_mem"};
    pipeline(connection, setting, 2);
    PQfinish(connection);
}
END
gcc -I root/usr/include/postgresql run.c -L "$LD_LIBRARY_PATH" -l:libpq.so.5 -o run
$as "$bin/initdb" -D data -A trust -U someone -N >initdb.log
$as "$bin/pg_ctl" -D data -o "-k $folder -c listen_addresses=" -l data/log -w start >start.log
./run "host=$folder user=someone dbname=postgres" | tee seen
cat >expected <<'END'
INSERT INTO t VALUES (1): PGRES_COMMAND_OK
BEGIN: PGRES_COMMAND_OK
INSERT INTO t VALUES (2): PGRES_COMMAND_OK
ROLLBACK: PGRES_COMMAND_OK
INSERT INTO t VALUES (3): PGRES_COMMAND_OK
SELECT string_agg(n::text, ' ') FROM t: 3
  WARNING:  SET LOCAL can only be used in transaction blocks
SET LOCAL work_mem = '7MB': PGRES_COMMAND_OK
SHOW work_mem: 7MB
END
cmp seen expected
