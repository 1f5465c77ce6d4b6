/* Statements of tasks and periodic tasks, as statements_table.h describes. */

/* --- tasks (tasks.md) --- */

/* Ends the tasks of this commit.  ST002: some no longer belong to this attempt; DETAIL is a JSON list of
 * their ids.  In the order of their ids, as they are claimed.  Each is found by its primary key, then by
 * its ctid, regardless of the statistics: `coalesce` prevents the use of the index of running tasks. $1
 * taskid[], $2 retry[], $3 starttime, $4 stoptime. */
STATEMENT(TASK_END, "task_end", 4,
          "with found as materialized (select e.retry, w.place from"
          " (select taskid, retry from unnest($1::text[], $2::int[]) e(taskid, retry) order by 1) e"
          " cross join lateral (select ctid as place from taskqueue where taskid = e.taskid limit 1) w),"
          " ended as (delete from taskqueue t using found f"
          " where t.ctid = f.place and coalesce(t.starttime, 0) = $3 and t.retry = f.retry returning t.*),"
          " noted as (insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, "
          "stoptime)"
          " select taskid, opname, info, qn, retry, step + 1, startat, starttime, $4 from ended)"
          " select case when count(*) <> cardinality($1::text[]) then fail('ST002', coalesce((select"
          " json_agg(a.taskid) from unnest($1::text[]) a(taskid) where a.taskid not in (select taskid from "
          "ended))::text,"
          " '[]')) end from ended")

/* The same for one task. $1 taskid, $2 retry, $3 starttime, $4 stoptime. */
STATEMENT(
    TASK_END_ONE, "task_end_one", 4,
    "with ended as (delete from taskqueue where taskid = $1 and retry = $2 and coalesce(starttime, 0) = $3"
    " returning opname, info, qn, step, startat)"
    " insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime)"
    " select $1, e.opname, e.info, e.qn, $2,"
    " case when e.opname is null then fail('ST002', json_build_array($1::text)::text) else e.step + 1 end,"
    " e.startat, $3, $4 from (select 1) one left join ended e on true")

/* The task continues after this commit.  ST002 as above. $1 taskid, $2 retry, $3 starttime, $4 checkpoint. */
STATEMENT(TASK_STEP, "task_step", 4,
          "with kept as (update taskqueue set step = step + 1, checkpoint = $4"
          " where taskid = $1 and retry = $2 and starttime = $3 returning 1)"
          " select case when count(*) = 0 then fail('ST002', json_build_array($1::text)::text) end from kept")

/* Before the creation of a task for a client.  ST026: the client, or all clients, have too many. $1 client,
 * $2 most of it, $3 most of all. */
STATEMENT(TASK_ADMIT, "task_admit", 5, "select task_admit($1, $2::int, $3::int, $4, $5::bigint[])")

/* Creates tasks, in the order of their resources; a task that already waits for the resource takes their
 * place (task_create in sql/ has the same rule). $1 taskid[], $2 opname[], $3 param[], $4 info[], $5
 * startat[], $6 qn[], $7 priority[], $8 batch[], $9 resource[], $10 domain[], $11 created, $12 strict[] (0,
 * 1), $13 requester (0: none), $14 latest[], $15 account[], $16 credential[], $17 of_client[] (0, 1). */
STATEMENT(
    TASK_MAKE, "task_make", 17,
    "insert into taskqueue as t"
    " (taskid, number, opname, param, info, startat, qn, priority, batch, resource, domain, created, strict, "
    "requester, latest, account, credential, of_client)"
    " select s.taskid, s.number, s.opname, s.param, s.info, s.startat, s.qn, s.priority, s.batch, "
    "s.resource, s.domain,"
    " $11::bigint, s.strict <> 0, nullif($13::bigint, 0), nullif(s.latest, 0), s.account, s.credential, "
    "s.of_client <> 0 from (select o.*, "
    "nextval('task_number') as number from unnest($1::text[], $2::text[],"
    " $3::text[], $4::text[], $5::bigint[], $6::int[], $7::int[], $8::int[], $9::text[], $10::text[],"
    " $12::int[], $14::bigint[], $15::text[], $16::text[], $17::int[]) with ordinality"
    " o(taskid, opname, param, info, startat, qn, priority, batch, resource, domain, strict, latest, "
    "account, "
    "credential, of_client, place) "
    "order by o.place "
    "offset 0) s"
    " order by s.resource collate \"C\", s.opname collate \"C\""
    " on conflict (opname, resource) where starttime is null and resource is not null do update"
    " set param = excluded.param, info = excluded.info, priority = least(t.priority, excluded.priority),"
    " account = excluded.account, credential = excluded.credential, of_client = excluded.of_client,"
    " startat = case when t.startat < 991231235959999 or t.exc = 'HELD'"
    " then greatest(t.startat, least(excluded.startat, coalesce(t.latest, excluded.startat)))"
    " else excluded.startat end,"
    " retry = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.retry else 0 end,"
    " exc = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.exc end,"
    " report = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.report end"
    " returning taskid, opname, resource, startat, priority, retry")

/* One task without a resource: nothing can take its place.  $1 taskid, $2 opname, $3 param, $4 info,
 * $5 startat, $6 qn, $7 priority, $8 batch, $9 domain, $10 created, $11 strict (0, 1),
 * $12 requester (0: none), $13 account, $14 credential, $15 of_client (0, 1). */
STATEMENT(
    TASK_MAKE_ONE, "task_make_one", 15,
    "insert into taskqueue"
    " (taskid, opname, param, info, startat, qn, priority, batch, domain, created, strict, requester,"
    " account, credential, of_client)"
    " values ($1, $2, $3, $4, $5, $6::int, $7::int, $8::int, $9, $10, $11::int <> 0, nullif($12::bigint, 0),"
    " $13, $14, $15::int <> 0)")

/* Columns of a task that is due, as tasks_due has them.  $1 domain, $2 latest start. */
STATEMENT(TASK_NEXT, "task_next", 2,
          "select taskid, opname, qn, priority, startat, retry, batch, domain from taskqueue"
          " where taskid = task_next($1, $2)")

/* A claim need not be durable.  $1 taskid, $2 starttime, $3 latest start, $4 holder. */
STATEMENT(
    TASK_CLAIM, "task_claim", 4,
    "update taskqueue t set starttime = $2, holder = $4, exc = null, report = null"
    " where taskid = $1 and starttime is null and startat <= $3"
    " and (domain is null or task_next(domain, $3) = taskid)"
    " returning taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn, "
    "priority, batch, created,"
    " (select c.period from cron c where c.name = t.cron and not c.dropped), account, credential, of_client,"
    " set_config('synchronous_commit', 'off', true)")

/* Several, without waiting for locks: a task missing in the result is locked at this moment, or another
 * commit has just moved its row, which counts as the same (busy). $1 taskid[], and as above. */
STATEMENT(
    TASK_CLAIM_MANY, "task_claim_many", 4,
    "with free as materialized (select w.place from (select taskid from unnest($1::text[]) e(taskid) order "
    "by 1) e"
    " cross join lateral (select t.ctid as place from taskqueue t where t.taskid = e.taskid and t.starttime "
    "is null"
    " and t.startat <= $3 and t.domain is null for update skip locked) w)"
    " update taskqueue t set starttime = $2, holder = $4, exc = null, report = null"
    " from free where t.ctid = free.place"
    " returning t.taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn, "
    "priority, batch, created,"
    " (select c.period from cron c where c.name = t.cron and not c.dropped), account, credential, of_client,"
    " (select set_config('synchronous_commit', 'off', true))")

/* After a claim: why the others could not be claimed. $1 taskid[]. */
STATEMENT(TASK_STATES, "task_states", 1,
          "select e.taskid, t.taskid is not null, t.starttime, t.startat, t.domain is not null"
          " from unnest($1::text[]) e(taskid) left join taskqueue t on t.taskid = e.taskid")

/* $1 taskid, $2 starttime, $3 retry, $4 startat, $5 whether it counts (0, 1), $6 exc, $7 report, $8
 * stoptime. */
STATEMENT(TASK_BACK, "task_back", 8, "select task_put_back($1, $2, $3, $4, $5::int <> 0, $6, $7, $8)")

/* After an unknown outcome: the step of the task, if it still belongs to this attempt; whether the attempt
 * has done it. $1 taskid, $2 starttime, $3 retry. */
STATEMENT(
    TASK_FIND, "task_find", 3,
    "select (select step from taskqueue where taskid = $1 and starttime = $2 and retry = $3),"
    " exists (select from task_history where taskid = $1 and starttime = $2 and retry = $3 and exc is null)")

/* $1 at most, $2 latest start, $3 earliest, if $4 is still the mark of early starts. */
STATEMENT(TASK_DUE, "task_due", 4,
          "select taskid, opname, qn, priority, startat, retry, batch, domain from tasks_due($1::int, $2,"
          " coalesce((select $3::bigint from task_early where mark = $4), 0))")

/* What bounds the next scan (backlog.h). $1 earliest start, if $2 is still the mark of early starts.  now()
 * is earlier than the snapshot, and the transaction that is begun here later than it. */
STATEMENT(
    TASK_OLDEST, "task_oldest", 2,
    "select tasks_oldest(coalesce((select $1::bigint from task_early where mark = $2), 0)),"
    " coalesce((select mark from task_early), 0), pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
    " stamp_of(now() - interval '30 seconds'), pg_current_xact_id()::text::bigint")

/* Tasks with unreported failures: $1 least number of failures, $2 at most.  Marks them as reported: $1
 * taskid, $2 its failures. */
STATEMENT(TASK_UNREPORTED, "task_unreported", 2,
          "select taskid, opname, info, retry, startat, exc, report from tasks_unreported($1::int, $2::int)")
STATEMENT(TASK_REPORTED, "task_reported", 2, "select task_reported($1, $2::int)")

/* $1 stamp, $2 at most. */
STATEMENT(TASK_EXPIRE, "task_expire", 2, "select task_expire($1, $2::int)")

/* The operations that this server declares. $1 opname[], $2 qn[], $3 batch[], $4 largest param. */
STATEMENT(TASK_OPERATIONS, "task_operations", 4,
          "select task_operations($1::text[], $2::int[], $3::int[], $4::int)")

STATEMENT(TASK_RUNNING, "task_running", 0,
          "select taskid, opname, qn, starttime, retry, holder, startat from tasks_running()")

/* $1 stamp, $2 batch. */
STATEMENT(TASK_PURGE, "task_purge", 2, "select task_purge_history($1, $2::int)")

/* For administrators. $1 operation, $2 prefix of info, $3 least retry, $4 earliest and $5 latest start, $6
 * at most, $7 start and $8 number of the last of the page before; task_rows.h has the columns. */
STATEMENT(
    TASK_LIST, "task_list", 8,
    "select taskid, opname, task_state(t), qn, priority, startat, retry, starttime, holder, batch,"
    " info, resource, domain, step, exc, report, created, account, credential, number, null::text, null::text"
    " from task_list($1, $2, $3::int, $4, $5, $6::int, $7, $8) t")

/* $1 taskid; the same columns. */
STATEMENT(
    TASK_SHOW, "task_show", 1,
    "select taskid, opname, task_state(t), qn, priority, startat, retry, starttime, holder, batch,"
    " info, resource, domain, step, exc, report, created, account, credential, number, param, checkpoint"
    " from taskqueue t where taskid = $1")

/* $1 taskid, $2 operation, $3 prefix of info, $4 failures only (0, 1), $5 earliest and $6 latest end, $7 at
 * most, $8 number of the last of the page before. */
STATEMENT(TASK_ATTEMPTS, "task_attempts", 8,
          "select taskid, opname, qn, retry, step, startat, starttime, stoptime, info, exc, report, number"
          " from task_attempts($1, $2, $3, $4::int <> 0, $5, $6, $7::int, $8)")

/* Actions of administrators: the result, and whether there is such a task. $1 taskid, $2 startat. */
STATEMENT(TASK_MOVE, "task_move", 2,
          "select task_move($1, $2), exists (select from taskqueue where taskid = $1)")
STATEMENT(
    TASK_HOLD, "task_hold", 1,
    "select case when task_hold($1) then 991231235959999 end, exists (select from taskqueue where taskid "
    "= $1)")
STATEMENT(TASK_DROP, "task_drop", 1, "select case when task_drop($1) then 0::bigint end, false")

/* $1 most rows that a count reads. */
STATEMENT(TASK_BACKLOG, "task_backlog", 1,
          "select qn, due, later, running, parked, failing, oldest from task_backlog($1::int)")

/* --- periodic tasks --- */

/* The end of a periodic task, which waits for its next time.  ST002 as in TASK_END. $1 taskid, $2
 * starttime, $3 retry, $4 stoptime, $5 startat of the next, $6 period and zone from which it was
 * computed. */
STATEMENT(CRON_END, "cron_end", 6,
          "select case when not cron_end($1, $2, $3, $4, $5, $6)"
          " then fail('ST002', json_build_array($1::text)::text) end")

/* The rules to plan. $1 zone; declared by modules: $2 name[], $3 period[], $4 module[]. */
STATEMENT(CRON_SCAN, "cron_scan", 4,
          "select name, opname, period, after from cron_scan($1, $2::text[], $3::text[], $4::text[])")

/* $1 rule, $2 its period and $3 its operation as seen, $4 startat, $5 qn, $6 zone. */
STATEMENT(CRON_PLAN, "cron_plan", 6, "select cron_plan($1, $2, $3, $4, $5::int, $6)")
