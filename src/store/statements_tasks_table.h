/* Statements of tasks and periodic tasks, as statements_table.h describes. */

/* --- tasks (tasks.md) --- */

/* Ends the tasks of this commit, and keeps arguments as the function task_kept, without the price of a call;
 * of tasks of rules none.  ST002: some no longer belong to this attempt; DETAIL is a JSON list of their ids.
 * In the order of their ids, as they are claimed.  Each is found by its primary key, then by its ctid,
 * regardless of the statistics: `coalesce` prevents the use of the index of running tasks. $1 taskid[], $2
 * retry[], $3 starttime, $4 stoptime, $5 result[]. */
STATEMENT(
    TASK_END, "task_end", 5,
    "with found as materialized (select e.retry, e.result, w.place from"
    " (select taskid, retry, result from unnest($1::text[], $2::int[], $5::text[]) e(taskid, retry, "
    "result) order by 1) e"
    " cross join lateral (select ctid as place from taskqueue where taskid = e.taskid limit 1) w),"
    " ended as (delete from taskqueue t using found f"
    " where t.ctid = f.place and coalesce(t.starttime, 0) = $3 and t.retry = f.retry returning t.*, "
    "f.result),"
    " noted as (insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, "
    "stoptime, owner, result, param, resource, domain, key, priority, batch, strict, of_client, credential, "
    "trace, holder)"
    " select taskid, opname, info, qn, retry, step + 1, startat, starttime, $4, coalesce(account, '#' "
    "|| requester), result,"
    " case when t.cron is null and octet_length(t.param) <= coalesce((select o.kept_bytes from "
    "task_operation o"
    " where o.opname = t.opname), (select o.kept_bytes from task_operation o where o.opname = 'put'), 0)"
    " and (t.param like '~%' or not exists (select from data_key)) then t.param end as param, resource, "
    "domain, key,"
    " case when t.cron is null then t.priority end as priority, batch, strict, of_client, credential, "
    "trace, holder from ended t)"
    " select case when count(*) <> cardinality($1::text[]) then fail('ST002', coalesce((select"
    " json_agg(a.taskid) from unnest($1::text[]) a(taskid) where a.taskid not in (select taskid from "
    "ended))::text,"
    " '[]')) end from ended")

/* The same for one task. $1 taskid, $2 retry, $3 starttime, $4 stoptime, $5 its result. */
STATEMENT(
    TASK_END_ONE, "task_end_one", 5,
    "with ended as (delete from taskqueue t where taskid = $1 and retry = $2 and coalesce(starttime, 0) = $3"
    " returning opname, info, qn, step, startat, coalesce(account, '#' || requester) as owner,"
    " case when t.cron is null and octet_length(t.param) <= coalesce((select o.kept_bytes from "
    "task_operation o"
    " where o.opname = t.opname), (select o.kept_bytes from task_operation o where o.opname = 'put'), 0)"
    " and (t.param like '~%' or not exists (select from data_key)) then t.param end as param, resource, "
    "domain, key,"
    " case when t.cron is null then t.priority end as priority, batch, strict, of_client, credential, "
    "trace, holder)"
    " insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, result, "
    "owner, param, resource, domain, key, priority, batch, strict, of_client, credential, "
    "trace, holder)"
    " select $1, e.opname, e.info, e.qn, $2,"
    " case when e.opname is null then fail('ST002', json_build_array($1::text)::text) else e.step + 1 end,"
    " e.startat, $3, $4, $5, e.owner, e.param, e.resource, e.domain, e.key, e.priority, e.batch, e.strict,"
    " e.of_client, e.credential, e.trace, e.holder from (select 1) one left join ended e on true")

/* The same for a task of an external worker of which no row was read: of one of the queues, under a claim
 * that lasts, not periodic.  By its primary key, regardless of the statistics, as TASK_END.  Its domain and
 * queue.  ST034: there is no such task.  $1 taskid, $2 retry, $3 starttime, $4 stoptime, $5 its result, $6
 * queues (bits). */
STATEMENT(
    TASK_END_TAKEN, "task_end_taken", 6,
    "with ended as (delete from taskqueue t where taskid = $1 and retry = $2 and coalesce(starttime, 0) = $3"
    " and coalesce(expires, 0) > $4 and coalesce(cron, '') = '' and $6::bigint >> qn & 1 = 1"
    " returning opname, info, qn, step, startat, coalesce(account, '#' || requester) as owner,"
    " case when octet_length(t.param) <= coalesce((select o.kept_bytes from task_operation o"
    " where o.opname = t.opname), (select o.kept_bytes from task_operation o where o.opname = 'put'), 0)"
    " and (t.param like '~%' or not exists (select from data_key)) then t.param end as param, resource,"
    " domain, key, priority, batch, strict, of_client, credential, trace, holder)"
    " insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, result,"
    " owner, param, resource, domain, key, priority, batch, strict, of_client, credential, trace, holder)"
    " select $1, e.opname, e.info, e.qn, $2, case when e.opname is null then fail('ST034', '') else e.step + "
    "1"
    " end, e.startat, $3, $4, $5, e.owner, e.param, e.resource, e.domain, e.key, e.priority, e.batch, "
    "e.strict,"
    " e.of_client, e.credential, e.trace, e.holder from (select 1) one left join ended e on true returning "
    "domain, qn")

/* The task continues after this commit.  ST002 as above. $1 taskid, $2 retry, $3 starttime, $4 checkpoint, $5
 * progress (null: as it was). */
STATEMENT(
    TASK_STEP, "task_step", 5,
    "with kept as (update taskqueue set step = step + 1, checkpoint = $4, progress = coalesce($5, progress)"
    " where taskid = $1 and retry = $2 and starttime = $3 returning 1)"
    " select case when count(*) = 0 then fail('ST002', json_build_array($1::text)::text) end from kept")

/* Before the creation of a task for a client.  ST026: the client, or all clients, have too many. $1 client,
 * $2 most of it, $3 most of all, $4 account, $5 quotas, $6 how many are created. */
STATEMENT(TASK_ADMIT, "task_admit", 6, "select task_admit($1, $2::int, $3::int, $4, $5::bigint[], $6::int)")

/* Cancels the tasks that run for one of the resources, or also those that wait.  $1 opname[], $2 resource[],
 * $3 taskid[] of the commit itself, which stay, $4 whether also those that wait (0, 1). */
STATEMENT(TASK_CANCEL_FOR, "task_cancel_for", 4,
          "select task_cancel_for($1::text[], $2::text[], $3::text[], $4::int <> 0)")

/* Before the creation of unique tasks: those for whose resource there is one, with its id and start.  $1
 * taskid[], $2 opname[], $3 resource[], $4 startat[], $5 stamps until which no other is created[]. */
STATEMENT(TASK_UNIQUE, "task_unique", 5,
          "select taskid, opname, resource, startat from task_unique($1::text[], $2::text[], $3::text[],"
          " $4::bigint[], $5::bigint[])")

/* Creates tasks, in the order of their resources; a task that already waits for the resource takes their
 * place (task_create in sql/ has the same rule). $1 taskid[], $2 opname[], $3 param[], $4 info[], $5
 * startat[], $6 qn[], $7 priority[], $8 batch[], $9 resource[], $10 domain[], $11 created, $12 strict[] (0,
 * 1), $13 requester[] (0: none), $14 latest[], $15 account[], $16 credential[], $17 of_client[] (0, 1), $18
 * key[], $19 unique[] (0, 1), $20 trace[]. */
STATEMENT(
    TASK_MAKE, "task_make", 20,
    "insert into taskqueue as t"
    " (taskid, number, opname, param, info, startat, qn, priority, batch, resource, domain, created, strict, "
    "requester, latest, account, credential, of_client, key, trace)"
    " select s.taskid, s.number, s.opname, s.param, s.info, s.startat, s.qn, s.priority, s.batch, "
    "s.resource, s.domain,"
    " $11::bigint, s.strict <> 0, nullif(s.requester, 0), nullif(s.latest, 0), s.account, s.credential, "
    "s.of_client <> 0, s.key, s.trace from (select o.*, "
    "nextval('task_number') as number from unnest($1::text[], $2::text[],"
    " $3::text[], $4::text[], $5::bigint[], $6::int[], $7::int[], $8::int[], $9::text[], $10::text[],"
    " $12::int[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::int[], $18::text[], "
    "$19::int[], $20::text[]) with "
    "ordinality"
    " o(taskid, opname, param, info, startat, qn, priority, batch, resource, domain, strict, "
    "requester, latest, account, "
    "credential, of_client, key, is_unique, trace, place) "
    "order by o.place "
    "offset 0) s where s.is_unique = 0 or exists (select from task_unique u where u.opname = s.opname"
    " and u.resource = s.resource and u.taskid = s.taskid)"
    " order by s.resource collate \"C\", s.opname collate \"C\""
    " on conflict (opname, resource) where starttime is null and resource is not null do update"
    " set param = excluded.param, info = excluded.info, priority = least(t.priority, excluded.priority),"
    " account = excluded.account, credential = excluded.credential, of_client = excluded.of_client,"
    " key = excluded.key, trace = excluded.trace, startat = case when (t.exc is null and t.startat "
    "< 991231235959999) or t.exc = 'HELD'"
    " then greatest(t.startat, least(excluded.startat, coalesce(t.latest, excluded.startat)))"
    " else excluded.startat end,"
    " latest = case when (t.exc is null and t.startat < 991231235959999) or t.exc = 'HELD' then t.latest "
    "else "
    "excluded.latest end,"
    " retry = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.retry else 0 end,"
    " exc = case when t.exc = 'HELD' then t.exc end, report = case when t.exc = 'HELD' then t.report end"
    " returning taskid, opname, resource, startat, priority, retry")

/* Several without resources, in their order, which a request makes all at once: nothing can take their
 * places, and what they share is one value.  $1 taskid[], $2 opname[], $3 param[], $4 info[], $5 startat[],
 * $6 qn[], $7 priority[], $8 batch[], $9 domain[], $10 created, $11 strict[] (0, 1), $12 requester (0: none),
 * $13 account, $14 credential, $15 of_client (0, 1), $16 key[], $17 trace. */
STATEMENT(TASK_MAKE_PLAIN, "task_make_plain", 17,
          "insert into taskqueue (taskid, opname, param, info, startat, qn, priority, batch, domain, "
          "created, strict,"
          " requester, account, credential, of_client, key, trace)"
          " select o.taskid, o.opname, o.param, o.info, o.startat, o.qn, o.priority, o.batch, o.domain, "
          "$10::bigint,"
          " o.strict <> 0, nullif($12::bigint, 0), $13::text, $14::text, $15::int <> 0, o.key, $17::text"
          " from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::int[], $7::int[], "
          "$8::int[],"
          " $9::text[], $11::int[], $16::text[])"
          " o(taskid, opname, param, info, startat, qn, priority, batch, domain, strict, key)")

/* One task without a resource: nothing can take its place.  $1 taskid, $2 opname, $3 param, $4 info,
 * $5 startat, $6 qn, $7 priority, $8 batch, $9 domain, $10 created, $11 strict (0, 1),
 * $12 requester (0: none), $13 account, $14 credential, $15 of_client (0, 1), $16 key, $17 trace. */
STATEMENT(
    TASK_MAKE_ONE, "task_make_one", 17,
    "insert into taskqueue"
    " (taskid, opname, param, info, startat, qn, priority, batch, domain, created, strict, requester,"
    " account, credential, of_client, key, trace)"
    " values ($1, $2, $3, $4, $5, $6::int, $7::int, $8::int, $9, $10, $11::int <> 0, nullif($12::bigint, 0),"
    " $13, $14, $15::int <> 0, $16, $17)")

/* Columns of a task that is due, as tasks_due has them: of the task of a domain that may start at a stamp, or
 * else first after it.  $1 domain, $2 the stamp. */
STATEMENT(TASK_NEXT, "task_next", 2,
          "select taskid, opname, qn, priority, startat, retry, batch, domain from taskqueue"
          " where taskid = coalesce(task_next($1, $2), task_later($1, $2, 991231235959998))")

/* A claim need not be durable.  $1 taskid, $2 starttime, $3 latest start, $4 holder, $5 the operation whose
 * tasks another process runs ('': none). */
STATEMENT(
    TASK_CLAIM, "task_claim", 5,
    "update taskqueue t set starttime = $2, holder = $4, exc = null, report = null"
    " where taskid = $1 and starttime is null and startat <= $3 and qn < 16 and opname <> $5"
    " and (domain is null or task_next(domain, $3) = taskid)"
    " and not exists (select from task_paused p where p.what in ('queue ' || t.qn, 'op ' || t.opname))"
    " returning taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn, "
    "priority, batch, created,"
    " (select c.period from cron c where c.name = t.cron and not c.dropped), account, credential, of_client,"
    " exists (select from task_limit) and exists (select from task_limit l where l.most is not null and "
    "l.what in"
    " ('queue ' || t.qn, 'op ' || t.opname, case when t.key is not null then 'key ' || t.opname end)), "
    "t.trace, t.requester,"
    " set_config('synchronous_commit', 'off', true)")

/* Several, without waiting for locks: a task missing in the result is locked at this moment, or another
 * commit has just moved its row, which counts as the same (busy). $1 taskid[], and as above. */
STATEMENT(
    TASK_CLAIM_MANY, "task_claim_many", 5,
    "with free as materialized (select w.place from (select taskid from unnest($1::text[]) e(taskid) order "
    "by 1) e"
    " cross join lateral (select t.ctid as place from taskqueue t where t.taskid = e.taskid and t.starttime "
    "is null"
    " and t.startat <= $3 and t.domain is null and t.qn < 16 and t.opname <> $5"
    " and not exists (select from task_paused p where p.what in ('queue ' || t.qn, 'op ' || t.opname))"
    " for update skip locked) w)"
    " update taskqueue t set starttime = $2, holder = $4, exc = null, report = null"
    " from free where t.ctid = free.place"
    " returning t.taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn, "
    "priority, batch, created,"
    " (select c.period from cron c where c.name = t.cron and not c.dropped), account, credential, of_client,"
    " exists (select from task_limit) and exists (select from task_limit l where l.most is not null and "
    "l.what in"
    " ('queue ' || t.qn, 'op ' || t.opname, case when t.key is not null then 'key ' || t.opname end)), "
    "t.trace, t.requester,"
    " (select set_config('synchronous_commit', 'off', true))")

/* After a claim: why the others could not be claimed. $1 taskid[], $2 the operation that another process
 * runs. */
STATEMENT(TASK_STATES, "task_states", 2,
          "select e.taskid, t.taskid is not null, t.starttime, t.startat, t.domain is not null, t.qn,"
          " exists (select from task_paused p where p.what in ('queue ' || t.qn, 'op ' || t.opname)),"
          " task_free_at(t.qn, t.opname, t.key), t.opname = $2"
          " from unnest($1::text[]) e(taskid) left join taskqueue t on t.taskid = e.taskid")

/* $1 taskid, $2 starttime, $3 retry, $4 startat, $5 whether it counts (0, 1), $6 exc, $7 report, $8
 * stoptime. */
STATEMENT(TASK_BACK, "task_back", 8, "select task_put_back($1, $2, $3, $4, $5::int <> 0, $6, $7, $8)")

/* The same in the commit that ends the attempt of an external worker.  ST034: it was over. */
STATEMENT(TASK_BACK_TAKEN, "task_back_taken", 8,
          "select coalesce(task_put_back($1, $2, $3, $4, $5::int <> 0, $6, $7, $8), fail('ST034', ''))")

/* After an unknown outcome: the step of the task, if it still belongs to this attempt; whether the attempt
 * has done it. $1 taskid, $2 starttime, $3 retry. */
STATEMENT(
    TASK_FIND, "task_find", 3,
    "select (select step from taskqueue where taskid = $1 and starttime = $2 and retry = $3),"
    " exists (select from task_history where taskid = $1 and starttime = $2 and retry = $3 and exc is null)")

/* $1 at most, $2 latest start, $3 earliest, if $4 is still the mark of early starts, $5 the present. */
STATEMENT(TASK_DUE, "task_due", 5,
          "select taskid, opname, qn, priority, startat, retry, batch, domain from tasks_due($1::int, $2,"
          " coalesce((select $3::bigint from task_early where mark = $4), 0), $5)")

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

/* The operations that this server declares. $1 opname[], $2 qn[], $3 batch[], $4 largest param, $5 the
 * largest that the history keeps[]. */
STATEMENT(TASK_OPERATIONS, "task_operations", 5,
          "select task_operations($1::text[], $2::int[], $3::int[], $4::int, $5::int[])")

STATEMENT(TASK_RUNNING, "task_running", 0,
          "select taskid, opname, qn, starttime, retry, holder, startat, expires from tasks_running()")

/* For external workers (workers.md), claims as above.  $1 queue, $2 domain (null: any), $3 at most, $4 latest
 * start, $5 starttime, $6 holder, $7 end of the claim, $8 the attempt whose end waits for them (null: none).
 */
STATEMENT(
    TASK_TAKE, "task_take", 8,
    "select taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn,"
    " priority, batch, created, null::text, account, credential, of_client, false, t.trace, t.starttime,"
    " t.expires, set_config('synchronous_commit', 'off', true)"
    " from task_take($1::int, $2, $3::int, $4, $5, $6, $7, $8) t")

/* One task without a domain, where nothing but its place decides: no task of the queue with a domain is due,
 * and nothing is paused or limited.  And whether claims of the queue have ended.  $1 queue, $2 latest start,
 * $3 starttime, $4 holder, $5 end of the claim. */
STATEMENT(
    TASK_TAKE_ONE, "task_take_one", 5,
    "update taskqueue t set starttime = $3, holder = $4, expires = $5, progress = null, exc = null,"
    " report = null, follows = null where t.ctid = ("
    "select case when set_config('stampd.unlimited', 'on', true) <> '' then f.ctid end from taskqueue f"
    " where f.starttime is null and f.domain is null and f.startat < 991231235959999 and f.qn = $1::int"
    " and f.priority = (select p.priority from taskqueue p where p.starttime is null and p.domain is null"
    " and p.startat < 991231235959999 and p.qn = $1::int order by p.priority limit 1)"
    " and f.startat <= $2 and not exists (select from task_limit) and not exists (select from task_paused)"
    " and not exists (select from taskqueue d where d.starttime is null and d.domain is not null"
    " and d.startat < 991231235959999 and greatest(d.qn, 15::smallint) = $1::int and d.startat <= $2)"
    " order by f.startat, f.number limit 1 for update skip locked)"
    " returning taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn,"
    " priority, batch, created, null::text, account, credential, of_client, false, t.trace, t.starttime,"
    " t.expires, (select exists (select from taskqueue o where o.starttime is not null and o.qn = $1::int"
    " and o.expires <= $2)), set_config('synchronous_commit', 'off', true)")

/* The same as TASK_TAKE in the commit that ends the attempt $8, and whether claims of the queue have ended.
 */
STATEMENT(
    TASK_TAKE_BESIDE, "task_take_beside", 8,
    "select taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn,"
    " priority, batch, created, null::text, account, credential, of_client, false, t.trace, t.starttime,"
    " t.expires, (select exists (select from taskqueue o where o.starttime is not null and o.qn = $1::int"
    " and o.expires <= $4))"
    " from task_take_beside($1::int, $2, $3::int, $4, $5, $6, $7, $8) t")

/* What the end of the attempt $1 has claimed, as far as the claims last.  $2 queue, $3 now. */
STATEMENT(
    TASK_FOLLOWING, "task_following", 3,
    "select taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn,"
    " priority, batch, created, null::text, account, credential, of_client, false, t.trace, t.starttime,"
    " t.expires from taskqueue t where t.starttime is not null and t.qn = $2::int and t.expires > $3"
    " and t.follows = $1")

/* Whether claims of the queue have ended; when it may have something to take again.  $1 queue, $2 now. */
STATEMENT(
    TASK_LATE, "task_late", 2,
    "select exists (select from taskqueue where starttime is not null and qn = $1::int and expires <= $2)")
STATEMENT(TASK_UPCOMING, "task_upcoming", 3, "select task_upcoming($1::int, $2, $3)")

/* Claims of the queue that have ended, as TASK_RUNNING has them.  $1 queue, $2 now, $3 at most. */
STATEMENT(TASK_OVERDUE, "task_overdue", 3,
          "select taskid, opname, qn, starttime, retry, holder, startat, expires from taskqueue"
          " where starttime is not null and qn = $1::int and expires <= $2 order by expires limit $3::int")

/* A task that an external worker has claimed, and whether and how this attempt has ended; without the claim
 * the start that the task has now.  $1 taskid, $2 starttime, $3 retry. */
STATEMENT(
    TASK_HELD, "task_held", 3,
    "select h.qn, h.opname, h.domain, coalesce(h.startat, (select n.startat from taskqueue n where n.taskid "
    "= $1)),"
    " h.expires, h.resource,"
    " (select c.period from cron c where c.name = h.cron and not c.dropped),"
    " e.is_done, e.qn, e.exc from (select 1) one"
    " left join taskqueue h on h.taskid = $1 and coalesce(h.starttime, 0) = $2 and h.retry = $3"
    " and coalesce(h.expires, 0) > 0"
    " cross join (select bool_or(d.exc is null) as is_done, max(d.qn) as qn, max(d.exc) as exc from "
    "task_history d"
    " where d.taskid = $1 and d.starttime = $2 and d.retry = $3) e")

/* Extends a claim that has not ended.  $1 taskid, $2 starttime, $3 retry, $4 its new end, $5 now, $6
 * progress (null: as it was). */
STATEMENT(TASK_KEEP, "task_keep", 6,
          "update taskqueue set expires = $4, progress = coalesce($6, progress)"
          " where taskid = $1 and coalesce(starttime, 0) = $2 and retry = $3 and coalesce(expires, 0) > $5"
          " returning expires")

/* $1 stamp, $2 batch. */
STATEMENT(TASK_PURGE, "task_purge", 2,
          "select task_purge_history($1, $2::int), task_debt_purge(), "
          "task_unique_purge()")

/* For administrators. $1 operation, $2 prefix of info, $3 least retry, $4 earliest and $5 latest start, $6
 * at most, $7 start and $8 number of the last of the page before, $9 states[] (null: all), $10 exc, $11
 * domain, $12 earliest and $13 latest claim; task_rows.h has the columns. */
STATEMENT(TASK_LIST, "task_list", 13,
          "select taskid, opname, task_state(t), qn, priority, startat, retry, starttime, holder, batch,"
          " info, resource, domain, step, exc, report, created, account, credential, number, expires, "
          "progress, key, trace, null::text, null::text"
          " from task_list($1, $2, $3::int, $4, $5, $6::int, $7, $8, string_to_array($9, ' '), $10, $11, "
          "$12, $13) t")

/* Does something with those that such a filter finds: $1 run, hold or drop, $2 whether it only counts (0, 1),
 * $3 operation, $4 prefix of info, $5 least retry, $6 earliest and $7 latest start, $8 states, $9 exc, $10
 * domain, $11 at most. */
STATEMENT(
    TASK_DO, "task_do", 11,
    "select matched, done from task_do($1, $2::int <> 0, $3, $4, $5::int, $6, $7, string_to_array($8, ' "
    "'), $9, $10, $11::int)")

/* Lets tasks that have ended run again: $1 whether it only counts (0, 1), $2 task (null: by the filter), $3
 * operation, $4 prefix of info, $5 exc, $6 earliest and $7 latest end, $8 at most, $9 number of the last of
 * the page before. */
STATEMENT(TASK_REDRIVE, "task_redrive", 9,
          "select matched, done, last from task_redrive($1::int <> 0, $2, $3, $4, $5, $6, $7, $8::int, $9)")

/* $1 taskid; the same columns. */
STATEMENT(TASK_SHOW, "task_show", 1,
          "select taskid, opname, task_state(t), qn, priority, startat, retry, starttime, holder, batch,"
          " info, resource, domain, step, exc, report, created, account, credential, number, expires, "
          "progress, key, trace, param, checkpoint"
          " from taskqueue t where taskid = $1")

/* $1 taskid, $2 operation, $3 prefix of info, $4 failures only (0, 1), $5 earliest and $6 latest end, $7 at
 * most, $8 number of the last of the page before, $9 earliest and $10 latest claim, $11 exc (DONE: success),
 * $12 prefix of the holder. */
STATEMENT(TASK_ATTEMPTS, "task_attempts", 12,
          "select taskid, opname, qn, retry, step, startat, starttime, stoptime, info, exc, report, number, "
          "result, param, trace, holder"
          " from task_attempts($1, $2, $3, $4::int <> 0, $5, $6, $7::int, $8, $9, $10, $11, $12)")

/* Actions of administrators: the result, and whether there is such a task. $1 taskid, $2 startat. */
STATEMENT(TASK_MOVE, "task_move", 2,
          "select task_move($1, $2), exists (select from taskqueue where taskid = $1)")
STATEMENT(
    TASK_HOLD, "task_hold", 1,
    "select case when task_hold($1) then 991231235959999 end, exists (select from taskqueue where taskid "
    "= $1)")
STATEMENT(TASK_DROP, "task_drop", 1, "select case when task_drop($1) then 0::bigint end, false")

/* The state of a task, and what its end has left.  $1 taskid, $2 its owner (null: any). */
STATEMENT(
    TASK_OWN, "task_own", 2,
    "select o.state, o.opname, o.retry, o.startat, o.exc, o.report, o.progress, o.result from ("
    "(select 0 as rank, task_state(t) as state, t.opname, t.retry, t.startat, t.exc, t.report, t.progress,"
    " null::text as result from taskqueue t"
    " where t.taskid = $1 and ($2::text is null or coalesce(t.account, '#' || t.requester) = $2))"
    " union all"
    " (select 1, case when h.exc is null then 'done' else lower(h.exc) end, h.opname, h.retry, h.startat,"
    " h.exc, h.report, null, h.result from task_history h"
    " where h.taskid = $1 and ($2::text is null or h.owner = $2) order by h.number desc limit 1)) o"
    " order by o.rank limit 1")

/* Whether there was such a task.  $1 taskid, $2 its owner (null: any). */
STATEMENT(TASK_CANCEL, "task_cancel", 2, "select task_end_without($1, $2, 'CANCELLED')")

/* $1 most rows that a count reads. */
STATEMENT(
    TASK_RULES, "task_rules", 1,
    "select c.name, c.opname, c.period, c.module, case when c.dropped then 'dropped' when t.taskid is null "
    "then"
    " 'unplanned' when t.starttime is not null then 'running' when t.startat = 991231235959999 then 'parked'"
    " else 'planned' end, t.taskid, t.startat, t.retry, t.exc from cron c left join lateral (select taskid, "
    "startat, starttime, retry, exc from taskqueue"
    " where cron = c.name limit 1) t on true order by c.name limit $1::int")
/* Pauses or resumes: $1 queue, -1: the operation $2; $3 whether it is paused (0, 1), $4 reason.  Whether that
 * has changed anything. */
STATEMENT(TASK_PAUSE, "task_pause", 4,
          "select case when $3::int <> 0 then task_pause(nullif($1::int, -1), $2, $4)"
          " else task_resume(nullif($1::int, -1), $2) end")
STATEMENT(TASK_PAUSED, "task_paused", 0, "select qn, opname, since, reason from task_paused order by what")
/* Sets a limit: $1 queue, -1: the operation $2; $3 whether it is of its keys (0, 1), $4 most at once, $5
 * count, $6 period in ms, $7 burst (0: none).  Whether there was one, or is. */
STATEMENT(
    TASK_LIMIT, "task_limit", 7,
    "select task_limit_set(nullif($1::int, -1), $2, $3::int <> 0, nullif($4::int, 0), nullif($5::int, 0),"
    " nullif($6::bigint, 0), nullif($7::int, 0))")
STATEMENT(TASK_LIMITS, "task_limits", 0,
          "select qn, opname, by_key, most, count, period_ms, burst from task_limit order by what")
STATEMENT(TASK_BACKLOG, "task_backlog", 1,
          "select qn, due, later, running, parked, failing, oldest from task_backlog($1::int)")

/* --- periodic tasks --- */

/* The end of a periodic task, which waits for its next time.  ST002 as in TASK_END. $1 taskid, $2
 * starttime, $3 retry, $4 stoptime, $5 startat of the next, $6 period and zone from which it was
 * computed, $7 its result. */
STATEMENT(CRON_END, "cron_end", 7,
          "select case when not cron_end($1, $2, $3, $4, $5, $6, $7)"
          " then fail('ST002', json_build_array($1::text)::text) end")

/* The rules to plan. $1 zone; declared by modules: $2 name[], $3 period[], $4 module[]. */
STATEMENT(CRON_SCAN, "cron_scan", 4,
          "select name, opname, period, after from cron_scan($1, $2::text[], $3::text[], $4::text[])")

/* $1 rule, $2 its period and $3 its operation as seen, $4 startat, $5 qn, $6 zone. */
STATEMENT(CRON_PLAN, "cron_plan", 6, "select cron_plan($1, $2, $3, $4, $5::int, $6)")
