-- Pauses and limits of tasks.
--
-- Pauses: queues and operations of which nothing is begun.  doc/reference/tasks.md, "Pauses"
--
-- Whoever claims a task obeys: scans leave out what is paused (tasks_due, task_next), claims refuse it, task_take gives none of it.  What
-- runs goes on.

create table stampd.task_paused (
  what   text collate "C" primary key,
  qn     smallint,
  opname text collate "C",
  since  bigint not null,
  reason text not null
);
comment on table stampd.task_paused is 'Queues and operations whose tasks are not begun.';
comment on column stampd.task_paused.what is 'queue and its number, or op and its name.';
comment on column stampd.task_paused.qn is 'The queue; null: an operation.';
comment on column stampd.task_paused.opname is 'The operation; null: a queue.';
comment on column stampd.task_paused.since is 'Stamp of the pause.';
comment on column stampd.task_paused.reason is 'Words of the administrator.';
grant select, insert, delete on stampd.task_paused to stampd;

-- Stable, as the operators in it are: else PostgreSQL could not inline it, and would parse it again in each claim.
create function stampd.task_is_paused(paused text[], qn smallint, opname text, key text) returns boolean
  language sql stable parallel safe as $$
  select paused <> '{}' and coalesce('queue ' || qn = any (paused) or 'op ' || opname = any (paused) or 'key ' || opname || ' ' || key = any (paused), false)
$$;
comment on function stampd.task_is_paused(text[], smallint, text, text) is
  'Of task_stopped: may no task of the queue, the operation and the key be begun?';

create function stampd.task_pause(qn int default null, opname text default null, reason text default '') returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  if (task_pause.qn is null) = (task_pause.opname is null) then
    raise exception 'either a queue or an operation is paused' using errcode = '22023';
  elsif task_pause.qn not between 0 and 31 then
    raise exception 'qn is 0 to 31' using errcode = '22023';
  elsif task_pause.opname !~ '^[A-Za-z][A-Za-z0-9_.-]{0,31}$' then
    raise exception 'not a name of an operation: %', task_pause.opname using errcode = '22023';
  elsif (select count(*) from task_paused) >= 1000 then
    raise exception 'at most 1000 queues and operations are paused' using errcode = '22023';
  end if;
  perform task_check_text('reason', task_pause.reason, 255);
  insert into task_paused (what, qn, opname, since, reason)
    values (coalesce('queue ' || task_pause.qn, 'op ' || task_pause.opname), task_pause.qn, task_pause.opname, stamp_now(),
            coalesce(task_pause.reason, ''))
    on conflict do nothing;
  return found;
end $$;
comment on function stampd.task_pause(int, text, text) is
  'Begins no task of a queue, or of an operation, until task_resume.  False: it was paused already.';

create function stampd.task_resume(qn int default null, opname text default null) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  was_paused boolean;
begin
  delete from task_paused p where p.what = coalesce('queue ' || task_resume.qn, 'op ' || task_resume.opname);
  was_paused := found;
  perform task_notify(0);
  return was_paused;
end $$;
comment on function stampd.task_resume(int, text) is 'Ends the pause of a queue, or of an operation.  False: it was not paused.';

-- --- limits: how many tasks of a queue, an operation, or a key of an operation run at once, and how many begin in a time ---
--
-- doc/reference/tasks.md, "Limits of queues, operations and keys".  A trigger of each claim keeps them, whoever claims.  Scans and task_take
-- leave out what may not begin (task_stopped), so that claims are seldom refused.  A rate is a debt (GCRA): each begin adds the time that
-- one takes at the rate, time pays it off.

create table stampd.task_limit (
  what   text collate "C" primary key,
  qn     smallint,
  opname text collate "C",
  by_key boolean not null default false,
  most   int,
  count  int,
  period_ms bigint,
  burst  int
);
comment on table stampd.task_limit is 'Limits of queues, operations and keys of operations.';
comment on column stampd.task_limit.what is 'queue and its number, op and its name, or key and the name of the operation.';
comment on column stampd.task_limit.qn is 'The queue; null: an operation.';
comment on column stampd.task_limit.opname is 'The operation; null: a queue.';
comment on column stampd.task_limit.by_key is 'The limit is of each key of the operation; tasks without a key are not limited.';
comment on column stampd.task_limit.most is 'So many run at once; null: any number.';
comment on column stampd.task_limit.count is 'So many begin in period_ms; null: any number.';
comment on column stampd.task_limit.period_ms is 'Milliseconds of the rate.';
comment on column stampd.task_limit.burst is 'So many may begin at once.';
grant select, insert, update, delete on stampd.task_limit to stampd;

create table stampd.task_debt (
  bucket text collate "C" primary key,
  paid   double precision not null
) with (fillfactor = 50);
comment on table stampd.task_debt is 'Begins of tasks with a rate: when what they owe is paid.  Rows that owe nothing are deleted.';
comment on column stampd.task_debt.bucket is 'As task_limit.what, with a blank and the key when the limit is of each key.';
comment on column stampd.task_debt.paid is 'Seconds since 1970.';
create index task_debt_paid on stampd.task_debt (paid);
grant select, insert, update, delete on stampd.task_debt to stampd;

create function stampd.task_limits_of(of_qn smallint, of_opname text, of_key text) returns setof stampd.task_limit
  language sql stable set search_path = stampd, pg_temp as $$
  select l.* from task_limit l
    where l.what in ('queue ' || of_qn, 'op ' || of_opname) or (of_key is not null and l.what = 'key ' || of_opname)
    order by l.what
$$;
comment on function stampd.task_limits_of(smallint, text, text) is 'The limits that count a task.';

create function stampd.task_running_of(l stampd.task_limit, of_key text, most int) returns bigint
  language sql volatile set search_path = stampd, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select count(*) from (
    select from taskqueue t
      where t.starttime is not null and (l.qn is null or t.qn = l.qn) and (l.opname is null or t.opname = l.opname)
        and (not l.by_key or t.key = of_key)
      limit most) r
$$;
comment on function stampd.task_running_of(stampd.task_limit, text, int) is 'How many run that the limit counts, at most `most`.';

-- Each claim calls it: without a search_path of its own, and without a condition of the trigger, which PostgreSQL would parse each time.  A
-- claim whose own query has found no limit sets stampd.unlimited until the end of its transaction.
create function stampd.task_begin() returns trigger
  language plpgsql volatile as $$
declare
  limits stampd.task_limit[];
  l      stampd.task_limit;
  ran_at double precision;
  bucket_of text;
begin
  if old.starttime is not null or new.starttime is null or current_setting('stampd.unlimited', true) = 'on' then
    return new;
  end if;
  if not exists (select from stampd.task_limit) then
    return new;
  end if;
  limits := array(select f from stampd.task_limits_of(new.qn, new.opname, new.key) f);
  if limits = '{}' then
    return new;
  end if;
  -- Who counts behind the lock sees the claims of all who had it before.
  perform pg_advisory_xact_lock(hashtextextended('stampd task limits', 0));
  ran_at := extract(epoch from clock_timestamp());
  foreach l in array limits loop
    if l.most is not null and stampd.task_running_of(l, new.key, l.most) >= l.most then
      return null;
    end if;
    bucket_of := l.what || case when l.by_key then ' ' || new.key else '' end;
    if l.count is not null and
       exists (select from stampd.task_debt d where d.bucket = bucket_of and d.paid > ran_at + (l.burst - 1) * l.period_ms / 1000.0 / l.count) then
      return null;
    end if;
  end loop;
  insert into stampd.task_debt as d (bucket, paid)
    select f.what || case when f.by_key then ' ' || new.key else '' end, ran_at + f.period_ms / 1000.0 / f.count
      from unnest(limits) f where f.count is not null
    on conflict (bucket) do update set paid = greatest(d.paid, ran_at) + excluded.paid - ran_at;
  return new;
end $$;
comment on function stampd.task_begin() is 'Trigger: a claim that a limit does not allow changes nothing.';
create trigger task_begin before update of starttime on stampd.taskqueue
  for each row execute function stampd.task_begin();
comment on trigger task_begin on stampd.taskqueue is 'Keeps the limits of task_limit.';

create function stampd.task_full(until bigint default null) returns table (bucket text, free_at double precision)
  language sql stable set search_path = stampd, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select l.what || case when l.by_key then ' ' || t.key else '' end, null::double precision
    from task_limit l join taskqueue t on t.starttime is not null and (l.qn is null or t.qn = l.qn) and (l.opname is null or t.opname = l.opname)
      and (not l.by_key or t.key is not null)
    where l.most is not null
    group by 1, l.most having count(*) >= l.most
  union all
  select d.bucket, d.paid - (l.burst - 1) * l.period_ms / 1000.0 / l.count
    from task_debt d join task_limit l on l.what = case when d.bucket like 'key %' then substring(d.bucket from '^key [^ ]+') else d.bucket end
    where l.count is not null and d.paid > extract(epoch from clock_timestamp())
      and stamp_of(to_timestamp(d.paid - (l.burst - 1) * l.period_ms / 1000.0 / l.count)) >= coalesce(until, stamp_now())
$$;
comment on function stampd.task_full(bigint) is
  'What may begin no task until then (null: now), as in task_debt.bucket, and when it may (seconds since 1970; null: when a task ends).';

create function stampd.task_stopped(until bigint default null) returns text[]
  language plpgsql stable set search_path = stampd, pg_temp as $$
declare
  paused constant text[] := array(select p.what from task_paused p);
begin
  if not exists (select from task_limit) then
    return paused;
  end if;
  return paused || array(select f.bucket from task_full(until) f);
end $$;
comment on function stampd.task_stopped(bigint) is 'What is paused, or at a limit until then: for task_is_paused.';

create function stampd.task_within_limits(listed stampd.task_due[], until bigint)
  returns table (place bigint, begins bigint, refused_by text)
  language plpgsql stable set search_path = stampd, pg_temp set jit = off as $$
declare
  present constant double precision := extract(epoch from clock_timestamp());
  now_due constant bigint := stamp_now();
  -- By the number of the bucket; null: any number may run, any number may begin.
  buckets text[];
  free    bigint[];
  gaps    double precision[];
  bursts  int[];
  paid    double precision[];
  task    record;
  slot    double precision;
  nth     int;
begin
  with hit as materialized (
    select distinct l.*, case when l.by_key then d.key end as of_key
      from unnest(listed) d
      cross join lateral (values ('queue ' || d.qn), ('op ' || d.opname), (case when d.key is not null then 'key ' || d.opname end)) w(what)
      join task_limit l on l.what = w.what),
  running as materialized (
    select t.qn, t.opname, t.key, count(*) as count from taskqueue t where t.starttime is not null group by 1, 2, 3),
  room as (
    select h.what || case when h.by_key then ' ' || h.of_key else '' end as bucket, h.burst, h.period_ms / 1000.0 / h.count as gap,
        h.most - (select coalesce(sum(r.count), 0) from running r
          where (h.qn is null or r.qn = h.qn) and (h.opname is null or r.opname = h.opname) and (h.of_key is null or r.key = h.of_key)) as free
      from hit h)
  select array_agg(r.bucket), array_agg(r.free), array_agg(r.gap), array_agg(r.burst), array_agg(greatest(present, k.paid))
    into buckets, free, gaps, bursts, paid
    from room r left join task_debt k on k.bucket = r.bucket;
  -- One after the other, due tasks first: a task that one limit refuses takes no place of another limit.  Those that begin later
  -- take none of today's: their claims decide.
  for task in
    select d.place, d.startat, d.startat <= now_due as is_due, coalesce(array_agg(b.number order by b.bucket) filter (where b.number is not null), '{}') as numbers
      from unnest(listed) with ordinality d(taskid, opname, qn, priority, startat, retry, batch, domain, key, place)
      cross join lateral (values ('queue ' || d.qn), ('op ' || d.opname), ('key ' || d.opname || ' ' || d.key)) w(bucket)
      left join unnest(buckets) with ordinality b(bucket, number) on b.bucket = w.bucket
      group by d.place, d.startat
      order by d.startat > now_due, d.place
  loop
    slot := present;
    refused_by := null;
    foreach nth in array task.numbers loop
      if gaps[nth] is not null and paid[nth] - (bursts[nth] - 1) * gaps[nth] > slot then
        slot := paid[nth] - (bursts[nth] - 1) * gaps[nth];
        if stamp_of(to_timestamp(slot)) > until then
          refused_by := buckets[nth];
        end if;
      end if;
    end loop;
    foreach nth in array task.numbers loop
      if task.is_due and slot = present and free[nth] <= 0 then
        refused_by := buckets[nth]; -- at last the widest
      end if;
    end loop;
    place := task.place;
    begins := case when slot > present then greatest(task.startat, stamp_of(to_timestamp(slot) + interval '1 ms')) else task.startat end;
    return next;
    continue when refused_by is not null;
    foreach nth in array task.numbers loop
      if task.is_due and slot = present then
        free[nth] := free[nth] - 1;
      end if;
      paid[nth] := greatest(paid[nth], slot) + gaps[nth];
    end loop;
  end loop;
end $$;
comment on function stampd.task_within_limits(stampd.task_due[], bigint) is
  'Of tasks that are due, by their places in the list: the start that rates give each; what limits it to none until then, as in '
  'task_debt.bucket (null: it may begin).';

create function stampd.tasks_due_limited(most int, before bigint, since bigint, present bigint) returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp set jit = off as $$
declare
  stopped text[] := task_stopped(before);
  listed  task_due[] := '{}';
  count   int;
  cut     text[];
  begins_at bigint[];
begin
  -- Many that must wait: what is behind them is listed, too.
  for round in 1 .. 4 loop
    listed := listed || array(
      select d from tasks_due_unlimited(most, before, since, stopped, present) d
        where not exists (select from unnest(listed) k where k.taskid = d.taskid)
          and not exists (select from unnest(listed) k where k.domain = d.domain));
    count := cardinality(listed);
    select array_agg(listed[w.place] order by w.place) filter (where w.refused_by is null),
        array_agg(w.begins order by w.place) filter (where w.refused_by is null), array_agg(distinct w.refused_by) filter (where w.refused_by is not null)
      into listed, begins_at, cut
      from task_within_limits(listed, before) w;
    listed := coalesce(listed, '{}');
    exit when cut is null or count < most;
    stopped := stopped || cut;
  end loop;
  return query select k.taskid, k.opname, k.qn, k.priority, k.begins, k.retry, k.batch, k.domain, k.key
    from unnest(listed, begins_at) with ordinality k(taskid, opname, qn, priority, startat, retry, batch, domain, key, begins, place)
    order by k.qn, k.priority, k.begins, k.place;
end $$;
comment on function stampd.tasks_due_limited(int, bigint, bigint, bigint) is 'For tasks_due, where there are limits.';

create function stampd.task_free_at(of_qn smallint, of_opname text, of_key text) returns bigint
  language plpgsql stable set search_path = stampd, pg_temp as $$
begin
  if not exists (select from task_limit) then
    return null;
  end if;
  return (select case when bool_or(f.free_at is null) then 991231235959999
                 else stamp_of(to_timestamp(max(f.free_at)) + interval '1 ms') end
    from task_full() f where task_is_paused(array[f.bucket], of_qn, of_opname, of_key));
end $$;
comment on function stampd.task_free_at(smallint, text, text) is
  'When limits may let a task begin: a stamp; 991231235959999: when another ends; null: now.';

create function stampd.task_limit_set(qn int default null, opname text default null, by_key boolean default false, most int default null,
                                      count int default null, period_ms bigint default null, burst int default null) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  was_there boolean;
  name constant text := case when task_limit_set.qn is not null then 'queue ' || task_limit_set.qn
    else case when task_limit_set.by_key then 'key ' else 'op ' end || task_limit_set.opname end;
begin
  if (task_limit_set.qn is null) = (task_limit_set.opname is null) or (task_limit_set.qn is not null and task_limit_set.by_key) then
    raise exception 'a limit is of a queue, an operation, or the keys of an operation' using errcode = '22023';
  elsif task_limit_set.qn not between 0 and 31 then
    raise exception 'qn is 0 to 31' using errcode = '22023';
  elsif task_limit_set.opname !~ '^[A-Za-z][A-Za-z0-9_.-]{0,31}$' then
    raise exception 'not a name of an operation: %', task_limit_set.opname using errcode = '22023';
  elsif task_limit_set.most not between 1 and 100000 or task_limit_set.count not between 1 and 1000000
        or task_limit_set.period_ms not between 1000 and 86400000 or task_limit_set.burst not between 1 and 1000000
        or (task_limit_set.count is null) <> (task_limit_set.period_ms is null) then
    raise exception 'at most 100000 run at once; a rate is 1 to 1000000 in 1 s to 1 day' using errcode = '22023';
  elsif not exists (select from task_limit l where l.what = name) and (select count(*) from task_limit) >= 100 then
    raise exception 'at most 100 limits' using errcode = '22023';
  end if;
  if task_limit_set.most is null and task_limit_set.count is null then
    delete from task_limit l where l.what = name;
  else
    insert into task_limit as l (what, qn, opname, by_key, most, count, period_ms, burst)
      values (name, task_limit_set.qn, task_limit_set.opname, task_limit_set.by_key, task_limit_set.most, task_limit_set.count,
              task_limit_set.period_ms, case when task_limit_set.count is not null then coalesce(task_limit_set.burst, task_limit_set.count) end)
      on conflict (what) do update set most = excluded.most, count = excluded.count, period_ms = excluded.period_ms, burst = excluded.burst;
  end if;
  was_there := found;
  -- Nobody owes more than the new rate lets anybody owe.
  if task_limit_set.count is not null then
    perform pg_advisory_xact_lock(hashtextextended('stampd task limits', 0));
    update task_debt d
      set paid = least(d.paid, extract(epoch from clock_timestamp())
        + coalesce(task_limit_set.burst, task_limit_set.count) * task_limit_set.period_ms / 1000.0 / task_limit_set.count)
      where d.bucket = name or (task_limit_set.by_key and d.bucket > name || ' ' and d.bucket < name || '!');
  end if;
  perform task_notify(0);
  return was_there;
end $$;
comment on function stampd.task_limit_set(int, text, boolean, int, int, bigint, int) is
  'Limits the tasks of a queue, an operation, or (by_key) each key of an operation: so many at once (`most`), so many begins in a time.  '
  'Neither: ends the limit; false: there was none.';

create function stampd.task_debt_purge(most int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from task_debt where bucket = any (array(
      select d.bucket from task_debt d where d.paid < extract(epoch from clock_timestamp()) - 1 order by d.paid limit most for update skip locked))
    returning 1)
  select count(*) from gone
$$;
comment on function stampd.task_debt_purge(int) is 'Deletes rows of task_debt that owe nothing, at most `most`: for scans.';

-- --- unique tasks ---

create table stampd.task_unique (
  opname   text collate "C",
  resource text collate "C",
  taskid   text collate "C" not null,
  startat  bigint not null,
  until    bigint not null,
  primary key (opname, resource)
);
comment on table stampd.task_unique is 'Tasks that were requested as unique for a period.';
comment on column stampd.task_unique.taskid is 'The task that was created.';
comment on column stampd.task_unique.startat is 'Its start then.';
comment on column stampd.task_unique.until is 'Stamp until which no other is created.';
create index task_unique_until on stampd.task_unique (until);
grant select, insert, update, delete on stampd.task_unique to stampd;

create function stampd.task_unique(ids text[], names text[], resources text[], starts bigint[], untils bigint[])
  returns table (taskid text, opname text, resource text, startat bigint)
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  asked record;
  held  record;
begin
  -- One after the other, so that the checks see what the others have created; in one order, so that none waits in a circle.
  for asked in
    select a.*, hashtextextended('stampd unique ' || a.opname || ' ' || a.resource, 0) as lock
      from unnest(ids, names, resources, starts, untils) a(taskid, opname, resource, startat, until) order by lock
  loop
    perform pg_advisory_xact_lock(asked.lock);
    select t.taskid, t.startat into held from taskqueue t
      where t.starttime is null and t.resource is not null and t.opname = asked.opname and t.resource = asked.resource;
    if not found then
      select t.taskid, t.startat into held from taskqueue t
        where t.starttime is not null and t.opname = asked.opname and t.resource = asked.resource limit 1;
    end if;
    if not found then
      select u.taskid, u.startat into held from task_unique u
        where u.opname = asked.opname and u.resource = asked.resource and u.until > stamp_now();
    end if;
    if found then
      taskid := held.taskid; opname := asked.opname; resource := asked.resource; startat := held.startat;
      return next;
    else
      insert into task_unique as u (opname, resource, taskid, startat, until)
        values (asked.opname, asked.resource, asked.taskid, asked.startat, asked.until)
        on conflict (opname, resource) do update set taskid = excluded.taskid, startat = excluded.startat, until = excluded.until;
    end if;
  end loop;
end $$;
comment on function stampd.task_unique(text[], text[], text[], bigint[], bigint[]) is
  'For workers, in the commit that requests unique tasks: those for whose resource there is one: it waits, runs, or its period lasts.';

create function stampd.task_unique_purge(most int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from task_unique u using (
      select d.opname, d.resource from task_unique d where d.until < stamp_now() order by d.until limit most for update skip locked) d
    where u.opname = d.opname and u.resource = d.resource returning 1)
  select count(*) from gone
$$;
comment on function stampd.task_unique_purge(int) is 'Deletes rows of task_unique whose period is over, at most `most`: for scans.';

-- --- tasks that a commit cancels ---

create function stampd.task_cancel_for(names text[], resources text[], own text[], waiting_too boolean) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  ended bigint := 0;
  id    text;
begin
  for id in
    select f.taskid from (
      select w.taskid, w.opname, w.resource from (select distinct a.opname, a.resource from unnest(names, resources) a(opname, resource)) a
        cross join lateral (select t.taskid, t.opname, t.resource from taskqueue t
          where waiting_too and t.starttime is null and t.resource is not null and t.opname = a.opname and t.resource = a.resource limit 1) w
      union all
      select t.taskid, t.opname, t.resource from taskqueue t
        where t.starttime is not null and (t.opname, t.resource) in (select a.opname, a.resource from unnest(names, resources) a(opname, resource))) f
    where f.taskid <> all (own)
    order by f.resource, f.opname, f.taskid -- as new tasks are created
  loop
    ended := ended + task_end_without(id, null, 'CANCELLED')::int;
  end loop;
  return ended;
end $$;
comment on function stampd.task_cancel_for(text[], text[], text[], boolean) is
  'For workers, in the commit that cancels tasks: ends those that run, or also those that wait, of these operations for these resources, '
  'but its own.  Returns how many.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.task_is_paused(text[], smallint, text, text), stampd.task_pause(int, text, text),
  stampd.task_resume(int, text),
  stampd.task_limits_of(smallint, text, text), stampd.task_running_of(stampd.task_limit, text, int),
  stampd.task_full(bigint), stampd.task_stopped(bigint), stampd.task_within_limits(stampd.task_due[], bigint), stampd.tasks_due_limited(int, bigint, bigint, bigint),
  stampd.task_free_at(smallint, text, text), stampd.task_limit_set(int, text, boolean, int, int, bigint, int), stampd.task_debt_purge(int),
  stampd.task_unique(text[], text[], text[], bigint[], bigint[]), stampd.task_unique_purge(int),
  stampd.task_cancel_for(text[], text[], text[], boolean) to stampd;
