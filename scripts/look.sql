-- look.sql: what waits, what is slow, what fills the disk.  For psql, in the database of a namespace, as an administrator of PostgreSQL:
--
--     psql -d stampd_demo -f /usr/local/share/stampd/look.sql
--
-- It reads only, and ends each query after ten seconds.  Stamps are yymmddhhmmssmmm, UTC.
\set QUIET on
\pset null '-'
set default_transaction_read_only = on;
set statement_timeout = '10s';
set search_path = stampd, pg_catalog;

\echo '--- what waits: tasks by queue'
select qn, due, later, running, parked, failing, oldest from task_backlog() order by qn;

\echo '--- what waits: the next tasks to start'
select taskid, opname, qn, priority, domain, startat, retry from tasks_due(20) order by startat limit 20;

\echo '--- what waits: domains with the most tasks, and what runs there'
select w.domain, w.waiting, r.taskid as running, r.opname, r.holder, r.starttime
  from (select domain, count(*) as waiting from taskqueue where starttime is null and domain is not null group by domain order by 2 desc limit 10) w
  left join taskqueue r on r.domain = w.domain and r.starttime is not null
  order by w.waiting desc;

\echo '--- what waits: paused queues and operations'
select what, since, reason from task_paused order by since;

\echo '--- what waits: sessions for others'
select pid, usename, application_name, pg_blocking_pids(pid) as waits_for, date_trunc('second', clock_timestamp() - query_start) as for_time, left(query, 100) as query
  from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0 order by query_start;

\echo '--- what is slow: open transactions, the oldest first'
select pid, usename, application_name, state, date_trunc('second', clock_timestamp() - xact_start) as open_for, left(query, 100) as query
  from pg_stat_activity where datname = current_database() and xact_start is not null and pid <> pg_backend_pid() order by xact_start limit 10;

\echo '--- what is slow: operations of the last 10,000 attempts at tasks'
with attempts as (
  select opname, exc, to_timestamp(lpad(stoptime::text, 15, '0'), 'YYMMDDHH24MISSMS') - to_timestamp(lpad(starttime::text, 15, '0'), 'YYMMDDHH24MISSMS') as took
    from task_history order by number desc limit 10000)
select opname, count(*) as attempts, count(*) filter (where exc is not null) as not_done, avg(took) as average, max(took) as longest
  from attempts group by opname order by sum(took) desc limit 20;

\echo '--- what is slow: statements (extension pg_stat_statements)'
select exists (select from pg_extension where extname = 'pg_stat_statements') as has_statements,
  coalesce((select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'), '') as place \gset
\if :has_statements
select calls, round(mean_exec_time::numeric, 2) as mean_ms, round(total_exec_time::numeric / 1000, 1) as total_s, left(query, 100) as query
  from :place.pg_stat_statements where dbid = (select oid from pg_database where datname = current_database()) order by total_exec_time desc limit 15;
\else
\echo 'the extension is not there'
\endif

\echo '--- what fills the disk: tables with their indexes'
select c.relname as "table", pg_size_pretty(pg_total_relation_size(c.oid)) as bytes, pg_size_pretty(pg_indexes_size(c.oid)) as of_indexes,
    s.n_live_tup as live_rows, s.n_dead_tup as dead_rows, coalesce(s.last_autovacuum, s.last_vacuum)::timestamptz(0) as vacuumed
  from pg_class c join pg_stat_user_tables s on s.relid = c.oid where s.schemaname = 'stampd' order by pg_total_relation_size(c.oid) desc limit 15;

\echo '--- what fills the disk: classes (v1: keys and contents, v2: attachments)'
select class, documents, pg_size_pretty(v1) as v1, pg_size_pretty(v2) as v2 from volumes() where class is not null order by volumes.v1 + volumes.v2 desc limit 20;

\echo '--- what fills the disk: accounts whose bytes are counted'
select account, pg_size_pretty(bytes) as bytes from account_bytes order by account_bytes.bytes desc limit 20;

\echo '--- what fills the disk: files of attachments'
select coalesce(store, 'directory') as store, count(*) as files, pg_size_pretty(sum(size)) as bytes, count(*) filter (where removing) as to_be_removed
  from blob group by store order by sum(size) desc;
