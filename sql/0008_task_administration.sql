-- Tasks for administrators: pages of what waits, runs and has ended, by filters, and numbers that are cheap to ask for however
-- many wait.  tasks.md, "Administration".
--
-- Every way goes along an index whatever the statistics say, as those of 0004 do.

create index task_history_failed on stampd.task_history (number) where exc is not null;

create function stampd.task_state(task stampd.taskqueue) returns text
  language sql immutable parallel safe as $$
  select case when (task).starttime is not null then 'running'
              when (task).startat < 991231235959999 then 'waiting'
              when (task).exc = 'HELD' then 'held' else 'parked' end
$$;
comment on function stampd.task_state(stampd.taskqueue) is
  'waiting; running; parked: it has failed too often; held: an administrator has parked it.';

create function stampd.task_list(opname text default null, info text default null, retry int default 0, since bigint default 0,
                                 until bigint default 991231235959999, most int default 100,
                                 after_start bigint default -1, after_number bigint default 0)
  returns setof stampd.taskqueue
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  -- Behind all texts that begin so.
  info_end constant text := task_list.info || repeat(chr(1114111), 64);
begin
  if task_list.info <> '' then
    return query select f.* from (
      select t.* from taskqueue t
        where t.info <> '' and t.info >= task_list.info and t.info < info_end and starts_with(t.info, task_list.info)
        offset 0) f
      where (task_list.opname is null or f.opname = task_list.opname) and f.retry >= task_list.retry
        and f.startat between since and until and (f.startat, f.number) > (after_start, after_number)
      order by f.startat, f.number limit most;
  elsif task_list.retry > 0 then
    return query select f.* from (
      select t.* from taskqueue t where t.starttime is null and t.retry > 0 and t.retry >= task_list.retry
      union all
      select t.* from taskqueue t where t.starttime is not null and t.retry >= task_list.retry
      offset 0) f
      where (task_list.opname is null or f.opname = task_list.opname)
        and f.startat between since and until and (f.startat, f.number) > (after_start, after_number)
      order by f.startat, f.number limit most;
  else
    return query select f.* from (
      (select t.* from taskqueue t
         where t.starttime is null and (t.startat, t.number) > (after_start, after_number)
           and t.startat between since and until
           and (task_list.opname is null or t.opname = task_list.opname)
         order by t.startat, t.number limit most)
      union all
      (select t.* from taskqueue t where t.starttime is not null
         and (task_list.opname is null or t.opname = task_list.opname)
         and t.startat between since and until and (t.startat, t.number) > (after_start, after_number))) f
      order by f.startat, f.number limit most;
  end if;
end $$;
comment on function stampd.task_list(text, text, int, bigint, bigint, int, bigint, bigint) is
  'Tasks in the order of their starts, at most `most`: of the operation, whose info begins so, that failed at least `retry` times, '
  'with starts from `since` to `until`; null: all.  The next page begins behind the startat and the number of the last.';

create function stampd.task_attempts(taskid text default null, opname text default null, info text default null,
                                     failures boolean default false, since bigint default 0,
                                     until bigint default 991231235959999, most int default 100, before_number bigint default null)
  returns setof stampd.task_history
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  info_end constant text := task_attempts.info || repeat(chr(1114111), 64);
  behind constant bigint := coalesce(before_number, 9223372036854775807);
begin
  if task_attempts.taskid is not null then
    return query select h.* from (select t.* from task_history t where t.taskid = task_attempts.taskid offset 0) h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname)
        and (coalesce(task_attempts.info, '') = '' or starts_with(h.info, task_attempts.info))
        and (not failures or coalesce(h.exc, 'MORE') not in ('MORE', 'DROPPED')) and h.stoptime between since and until
      order by h.number desc limit most;
  elsif task_attempts.info <> '' then
    return query select h.* from (
      select t.* from task_history t
        where t.info <> '' and t.info >= task_attempts.info and t.info < info_end and starts_with(t.info, task_attempts.info)
        offset 0) h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname)
        and (not failures or coalesce(h.exc, 'MORE') not in ('MORE', 'DROPPED')) and h.stoptime between since and until
      order by h.number desc limit most;
  elsif failures then
    return query select h.* from task_history h
      where h.exc is not null and h.exc not in ('MORE', 'DROPPED') and h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname) and h.stoptime between since and until
      order by h.number desc limit most;
  else
    return query select h.* from task_history h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname) and h.stoptime between since and until
      order by h.number desc limit most;
  end if;
end $$;
comment on function stampd.task_attempts(text, text, text, boolean, bigint, bigint, int, bigint) is
  'Attempts that have ended, the newest first, at most `most`: at the task, of the operation, whose info begins so, failures and '
  'losses only, that ended from `since` to `until`; null: all.  The next page begins before the number of the last.';

-- The numbers of 0004 counted the first rows of a queue, so that many tasks of the far future hid what is due.
create or replace function stampd.task_backlog(most int default 10000)
  returns table (qn smallint, due bigint, later bigint, running bigint, parked bigint, failing bigint, oldest bigint)
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  with recursive place(qn, priority) as (
    (select t.qn, t.priority from taskqueue t
       where t.starttime is null and t.domain is null and t.startat < 991231235959999
       order by t.qn, t.priority limit 1)
    union all
    select n.qn, n.priority from place p cross join lateral (
      select t.qn, t.priority from taskqueue t
        where t.starttime is null and t.domain is null and t.startat < 991231235959999
          and (t.qn, t.priority) > (p.qn, p.priority)
        order by t.qn, t.priority limit 1) n
  ), present as materialized (
    select stamp_now() as stamp
  ), counted as (
    select p.qn,
      (select count(*) from (select from taskqueue t
         where t.starttime is null and t.domain is null and t.startat < 991231235959999
           and t.qn = p.qn and t.priority = p.priority and t.startat <= n.stamp limit most) c) as due,
      (select count(*) from (select from taskqueue t
         where t.starttime is null and t.domain is null and t.startat < 991231235959999
           and t.qn = p.qn and t.priority = p.priority and t.startat > n.stamp limit most) c) as later,
      0::bigint as running, 0::bigint as parked, 0::bigint as failing,
      (select t.startat from taskqueue t
         where t.starttime is null and t.domain is null and t.startat < 991231235959999
           and t.qn = p.qn and t.priority = p.priority and t.startat <= n.stamp
         order by t.startat, t.number limit 1) as oldest
      from place p cross join present n
    union all
    select t.qn, count(*), 0, 0, 0, 0, min(t.startat) from (select w.qn, w.startat from taskqueue w cross join present n
        where w.starttime is null and w.domain is not null and w.startat < 991231235959999 and w.startat <= n.stamp
        order by w.startat limit most) t group by t.qn
    union all
    select t.qn, 0, count(*), 0, 0, 0, null from (select w.qn from taskqueue w cross join present n
        where w.starttime is null and w.domain is not null and w.startat < 991231235959999 and w.startat > n.stamp
        order by w.startat limit most) t group by t.qn
    union all
    select t.qn, 0, 0, count(*), 0, 0, null from taskqueue t where t.starttime is not null group by t.qn
    union all
    select t.qn, 0, 0, 0, count(*), 0, null from (select w.qn from taskqueue w
        where w.starttime is null and w.startat = 991231235959999 limit most) t group by t.qn
    union all
    select t.qn, 0, 0, 0, 0, count(*), null from (select w.qn from taskqueue w
        where w.starttime is null and w.retry > 0 limit most) t group by t.qn
  )
  select c.qn, sum(c.due)::bigint, sum(c.later)::bigint, sum(c.running)::bigint, sum(c.parked)::bigint, sum(c.failing)::bigint,
    min(c.oldest) from counted c group by c.qn order by c.qn
$$;
comment on function stampd.task_backlog(int) is
  'By queue: tasks that may start now, those that may later, that run, that are parked, that wait after failures; the start of '
  'the oldest that may.  No count reads more than `most` rows: of due and later ones that many of each priority are counted, and '
  'of all that have a domain.';

revoke execute on function stampd.task_state(stampd.taskqueue),
  stampd.task_list(text, text, int, bigint, bigint, int, bigint, bigint),
  stampd.task_attempts(text, text, text, boolean, bigint, bigint, int, bigint) from public;
grant execute on function stampd.task_state(stampd.taskqueue),
  stampd.task_list(text, text, int, bigint, bigint, int, bigint, bigint),
  stampd.task_attempts(text, text, text, boolean, bigint, bigint, int, bigint) to stampd;
