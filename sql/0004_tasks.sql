-- Tasks: operations to be run later, and what became of them.  tasks.md tells the model and who does what.
--
-- A task waits (starttime null) or runs (starttime set).  One that waits until the end of the century is parked: nobody
-- starts it but an administrator.  Claiming is an update by primary key; what looks for due tasks reads indexes whose
-- predicates leave out what runs, what is parked, and tasks that wait for the turn of their domain.

create sequence stampd.task_number;
comment on sequence stampd.task_number is 'Order of creation, for tasks with equal starts.';

create table stampd.taskqueue (
  taskid     text collate "C" primary key check (taskid ~ '^[a-z0-9]{8,64}$'),
  number     bigint not null default nextval('stampd.task_number'),
  opname     text collate "C" not null,
  param      text not null,
  info       text collate "C" not null default '',
  retry      int not null default 0,
  startat    bigint not null,
  starttime  bigint,
  holder     text collate "C",
  qn         smallint not null default 0 check (qn between 0 and 15),
  priority   smallint not null default 20 check (priority between 0 and 255),
  batch      smallint not null default 1 check (batch between 1 and 1000),
  resource   text collate "C",
  domain     text collate "C",
  step       int not null default 0,
  checkpoint text,
  exc        text,
  report     text,
  created    bigint not null,
  check ((starttime is null) = (holder is null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 10000);
comment on table stampd.taskqueue is
  'Tasks: operations to be run later.  A task is written by the commit of the operation that asks for it, and deleted by its '
  'own.  Do not write it by hand: use the functions task_….';
comment on column stampd.taskqueue.taskid is 'Name of the task, drawn at random.';
comment on column stampd.taskqueue.opname is 'The operation to run.';
comment on column stampd.taskqueue.param is 'Its argument param: a JSON object.';
comment on column stampd.taskqueue.info is 'Words by which administrators find the task.';
comment on column stampd.taskqueue.retry is 'How many attempts have failed, or were lost.';
comment on column stampd.taskqueue.startat is 'Stamp before which it does not start; 991231235959999: parked.';
comment on column stampd.taskqueue.starttime is 'Stamp of the present attempt''s claim; null: it waits.';
comment on column stampd.taskqueue.holder is 'Which process has claimed it: installation-generation-slot.';
comment on column stampd.taskqueue.qn is 'Number of its queue.';
comment on column stampd.taskqueue.priority is 'Smaller is sooner.';
comment on column stampd.taskqueue.batch is 'How many of its operation may share a request and a commit.';
comment on column stampd.taskqueue.resource is 'What it works on: of an operation at most one task waits for a resource.';
comment on column stampd.taskqueue.domain is 'Tasks of a domain run one at a time, by priority and start.';
comment on column stampd.taskqueue.step is 'Commits that it has made so far, in all its attempts.';
comment on column stampd.taskqueue.checkpoint is 'What its last commit left for the next cycle: JSON; null: nothing.';
comment on column stampd.taskqueue.exc is 'Code of the exception that ended the last attempt; LOST; HELD; null: none.';
comment on column stampd.taskqueue.report is 'Words about it.';
comment on column stampd.taskqueue.created is 'Stamp of its creation.';

-- Discovery, in the order in which tasks are started.
create index taskqueue_due on stampd.taskqueue (qn, priority, startat, number)
  where starttime is null and domain is null and startat < 991231235959999;
create index taskqueue_domain on stampd.taskqueue (domain, priority, startat, number)
  where starttime is null and domain is not null and startat < 991231235959999;
create index taskqueue_domain_due on stampd.taskqueue (startat, domain)
  where starttime is null and domain is not null and startat < 991231235959999;
-- Rules that the database itself keeps.
create unique index taskqueue_resource on stampd.taskqueue (opname, resource)
  where starttime is null and resource is not null;
create unique index taskqueue_turn on stampd.taskqueue (domain)
  where starttime is not null and domain is not null;
-- Small ones: what runs, what has failed.  And what administrators look by.
create index taskqueue_running on stampd.taskqueue (starttime) where starttime is not null;
create index taskqueue_failing on stampd.taskqueue (retry, startat) where starttime is null and retry > 0;
create index taskqueue_start on stampd.taskqueue (startat, number) where starttime is null;
create index taskqueue_info on stampd.taskqueue (info, number) where info <> '';
grant select, insert, update, delete on stampd.taskqueue to stampd;
grant usage on sequence stampd.task_number to stampd;

create table stampd.task_history (
  number    bigint generated always as identity primary key,
  taskid    text collate "C" not null,
  opname    text collate "C" not null,
  info      text collate "C" not null,
  qn        smallint not null,
  retry     int not null,
  step      int not null,
  startat   bigint not null,
  starttime bigint not null,
  stoptime  bigint not null,
  exc       text,
  report    text
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
comment on table stampd.task_history is 'Attempts at tasks that have ended, in the order of their ends; forgotten after task_history_s.';
comment on column stampd.task_history.retry is 'Which attempt it was, from 0.';
comment on column stampd.task_history.step is 'Commits that the task had made when the attempt ended.';
comment on column stampd.task_history.startat is 'Before which it was not to start.';
comment on column stampd.task_history.starttime is 'Stamp of the claim.';
comment on column stampd.task_history.stoptime is 'Stamp of the end.';
comment on column stampd.task_history.exc is 'Code of the exception; LOST; MORE: time was up between two cycles, it goes on; DROPPED; null: done.';
create index task_history_task on stampd.task_history (taskid);
create index task_history_info on stampd.task_history (info, number) where info <> '';
grant select, insert, delete on stampd.task_history to stampd;

-- --- what is due ---
--
-- Their plans are index scans whatever the statistics say: a queue fills and empties faster than it is analysed.

create function stampd.task_next(of_domain text, before bigint) returns text
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  level smallint := -1;
  found_id text;
begin
  loop
    select t.priority into level from taskqueue t
      where t.starttime is null and t.domain = of_domain and t.startat < 991231235959999 and t.priority > level
      order by t.priority limit 1;
    if not found then
      return null;
    end if;
    select t.taskid into found_id from taskqueue t
      where t.starttime is null and t.domain = of_domain and t.startat < 991231235959999
        and t.priority = level and t.startat <= before
      order by t.startat, t.number limit 1;
    if found then
      return found_id;
    end if;
  end loop;
end $$;
comment on function stampd.task_next(text, bigint) is
  'The task of a domain whose turn it is: of those that may start at `before`, the first by priority, start, creation.';

create type stampd.task_due as (
  taskid text, opname text, qn smallint, priority smallint, startat bigint, retry int, batch smallint, domain text);

create function stampd.tasks_due_of_domains(most int, before bigint) returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  first_due constant text[] := array(
    select t.domain from taskqueue t
      where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and t.startat <= before
      order by t.startat limit 1000);
  is_whole constant boolean := cardinality(first_due) < 1000;
  domains  constant text[] := array(select distinct f.domain from unnest(first_due) f(domain) order by f.domain);
  name  text := '';
  place int := 0;
  given int := 0;
  chosen task_due;
begin
  -- Few are due: their domains are known.  Many: step from domain to domain along the index.
  while given < most loop
    if is_whole then
      place := place + 1;
      name := domains[place];
    else
      name := (select t.domain from taskqueue t
        where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and t.domain > name
        order by t.domain limit 1);
    end if;
    exit when name is null;
    continue when exists (select from taskqueue t where t.starttime is not null and t.domain = name);
    select t.taskid, t.opname, t.qn, t.priority, t.startat, t.retry, 1::smallint, t.domain into chosen
      from taskqueue t where t.taskid = task_next(name, before);
    if found then
      given := given + 1;
      return next chosen;
    end if;
  end loop;
end $$;

create function stampd.tasks_due(most int default 1000, before bigint default null) returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  until constant bigint := coalesce(before, stamp_now());
begin
  return query
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
  ), due as (
    select d.* from place p cross join lateral (
      select t.taskid, t.opname, t.qn, t.priority, t.startat, t.retry, t.batch, t.domain from taskqueue t
        where t.starttime is null and t.domain is null and t.startat < 991231235959999
          and t.qn = p.qn and t.priority = p.priority and t.startat <= until
        order by t.startat, t.number limit most) d
    union all
    select o.* from tasks_due_of_domains(most, until) o
  ), ranked as (
    select d.*, row_number() over (partition by d.qn order by d.priority, d.startat) as rank from due d
  )
  select r.taskid, r.opname, r.qn, r.priority, r.startat, r.retry, r.batch, r.domain from ranked r
    where r.rank <= most order by r.qn, r.priority, r.startat;
end $$;
comment on function stampd.tasks_due(int, bigint) is
  'Tasks that may start at the stamp `before` (null: now), in the order queue, priority, start: at most `most` a queue, of each '
  'domain the one whose turn it is.  Locks nothing.';

create function stampd.tasks_running() returns setof stampd.taskqueue
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  select t.* from taskqueue t where t.starttime is not null order by t.starttime
$$;
comment on function stampd.tasks_running() is 'Tasks under way, the oldest claims first.';

-- --- ends that are no success ---

create function stampd.task_put_back(id text, started bigint, attempt int, again bigint, is_failure boolean,
                                     code text, words text, stopped bigint) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  held  taskqueue;
  start bigint := again;
begin
  select * into held from taskqueue t
    where t.taskid = id and t.starttime = started and t.retry = attempt for update;
  if not found then
    return null;
  end if;
  insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, report)
    values (id, held.opname, held.info, held.qn, held.retry, held.step, held.startat, started, stopped, code, words);
  loop
    if held.resource is not null then
      -- Another waits for the same resource, with a newer param: it does this one's work, not sooner than this would.
      update taskqueue t
        set startat = case when again < 991231235959999 then greatest(t.startat, again) else t.startat end,
            priority = least(t.priority, held.priority)
        where t.opname = held.opname and t.resource = held.resource and t.starttime is null
        returning t.startat into start;
      if found then
        delete from taskqueue t where t.taskid = id;
        return start;
      end if;
    end if;
    begin
      update taskqueue t
        set starttime = null, holder = null, startat = again,
            retry = t.retry + is_failure::int,
            exc = case when is_failure then code end, report = case when is_failure then words end
        where t.taskid = id;
      return again;
    exception when unique_violation then null; -- one has begun to wait for the resource just now
    end;
  end loop;
end $$;
comment on function stampd.task_put_back(text, bigint, int, bigint, boolean, text, text, bigint) is
  'For workers: ends the attempt of a task that is still the one named (claim `started`, retry `attempt`) without its success; '
  'it waits again, until `again`.  Returns the start of what waits now; null: the attempt was over.';

-- --- administrators' functions ---

create function stampd.task_create(opname text, param text default '{}', startat bigint default null, info text default '',
                                   qn int default 0, priority int default 20, resource text default null,
                                   domain text default null, batch int default 1) returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  made constant bigint := stamp_now();
  kept text;
begin
  if json_typeof(task_create.param::json) <> 'object' then
    raise exception 'param is a JSON object' using errcode = '22023';
  elsif task_create.opname !~ '^[A-Za-z][A-Za-z0-9_.-]{0,31}$' then
    raise exception 'not a name of an operation: %', task_create.opname using errcode = '22023';
  end if;
  insert into taskqueue as t (taskid, opname, param, info, startat, qn, priority, resource, domain, batch, created)
    values (substr(translate(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 1, 40), task_create.opname,
            task_create.param, coalesce(task_create.info, ''), coalesce(task_create.startat, made), task_create.qn,
            task_create.priority, task_create.resource, task_create.domain,
            case when task_create.domain is null then task_create.batch else 1 end, made)
    on conflict (opname, resource) where starttime is null and resource is not null do update
      set param = excluded.param, info = excluded.info, priority = least(t.priority, excluded.priority),
          startat = case when t.startat < 991231235959999 or t.exc = 'HELD' then greatest(t.startat, excluded.startat)
                         else excluded.startat end,
          retry = case when t.startat = 991231235959999 and t.exc is distinct from 'HELD' then 0 else t.retry end,
          exc = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.exc end,
          report = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.report end
    returning t.taskid into kept;
  return kept;
end $$;
comment on function stampd.task_create(text, text, bigint, text, int, int, text, text, int) is
  'A new task; startat null: at once.  When one of the operation waits for the resource already, that one takes the new param, '
  'the later start and the smaller priority.  Returns the taskid.';

create function stampd.task_move(taskid text, startat bigint) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held taskqueue;
begin
  if task_move.startat not between 101000000000 and 991231235959998 then
    raise exception 'not a stamp before the end of the century: %', task_move.startat using errcode = '22023';
  end if;
  select * into held from taskqueue t where t.taskid = task_move.taskid for update;
  if not found or held.starttime is not null then
    return null;
  end if;
  -- Who takes a task out of the park wants it tried as often as a new one.
  update taskqueue t
    set startat = task_move.startat,
        retry = case when held.startat = 991231235959999 then 0 else t.retry end,
        exc = case when held.startat = 991231235959999 then null else t.exc end,
        report = case when held.startat = 991231235959999 then null else t.report end
    where t.taskid = task_move.taskid;
  return task_move.startat;
end $$;
comment on function stampd.task_move(text, bigint) is
  'Moves the start of a task that waits or is parked; of a parked one retry begins at 0 again.  Returns the start; null: there is '
  'no such task, or it runs.';

create function stampd.task_run(taskid text) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  select task_move($1, stamp_now())
$$;
comment on function stampd.task_run(text) is 'Moves the start of a task to now, as task_move does.';

create function stampd.task_hold(taskid text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  update taskqueue t
    set startat = 991231235959999, exc = 'HELD',
        report = 'Held by an administrator' || case when t.exc is null then '.' when t.exc = 'HELD' then '.'
                                                    else ', after ' || t.exc || ': ' || coalesce(t.report, '') end
    where t.taskid = task_hold.taskid and t.starttime is null;
  return found;
end $$;
comment on function stampd.task_hold(text) is
  'Parks a task that waits, until task_move or task_run.  False: there is no such task, or it runs.';

create function stampd.task_drop(taskid text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  with gone as (
    delete from taskqueue t where t.taskid = task_drop.taskid returning t.*
  )
  insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, report)
    select g.taskid, g.opname, g.info, g.qn, g.retry, g.step, g.startat, coalesce(g.starttime, stamp_now()), stamp_now(),
      'DROPPED', g.report from gone g;
  return found;
end $$;
comment on function stampd.task_drop(text) is
  'Deletes a task.  One that runs will not commit what it does.  False: there is no such task.';

create function stampd.task_purge_history(older_than_stamp bigint, batch int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from task_history where ctid = any (array(
      select f.ctid from (select h.ctid, h.stoptime from task_history h order by h.number limit batch) f
        where f.stoptime < older_than_stamp))
    returning 1
  ) select count(*) from gone
$$;
comment on function stampd.task_purge_history(bigint, int) is
  'Forgets attempts that ended before the stamp, out of the `batch` oldest.  Returns how many; call again until it returns 0.  '
  'The server does it at each scan.';

create function stampd.task_backlog(most int default 10000)
  returns table (qn smallint, due bigint, later bigint, running bigint, parked bigint, failing bigint, oldest bigint)
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  with present as (
    select stamp_now() as stamp
  ), counted as (
    select t.qn, t.startat <= p.stamp as is_due, t.startat, 'waiting' as what from present p cross join generate_series(0, 15) q
      cross join lateral (select w.qn, w.startat from taskqueue w
        where w.starttime is null and w.domain is null and w.startat < 991231235959999 and w.qn = q::smallint
        order by w.qn, w.priority, w.startat limit most) t
    union all
    select t.qn, t.startat <= p.stamp, t.startat, 'waiting' from present p cross join lateral (select w.qn, w.startat from taskqueue w
        where w.starttime is null and w.domain is not null and w.startat < 991231235959999
        order by w.startat limit most) t
    union all
    select t.qn, false, null, 'running' from taskqueue t where t.starttime is not null
    union all
    select t.qn, false, null, 'parked' from (select w.qn from taskqueue w
        where w.starttime is null and w.startat = 991231235959999 order by w.startat, w.number limit most) t
    union all
    select t.qn, false, null, 'failing' from (select w.qn from taskqueue w
        where w.starttime is null and w.retry > 0 order by w.retry, w.startat limit most) t
  )
  select c.qn, count(*) filter (where what = 'waiting' and is_due), count(*) filter (where what = 'waiting' and not is_due),
    count(*) filter (where what = 'running'), count(*) filter (where what = 'parked'),
    count(*) filter (where what = 'failing'), min(c.startat) filter (where is_due)
    from counted c group by c.qn order by c.qn
$$;
comment on function stampd.task_backlog(int) is
  'By queue: tasks that may start now, those that may later, that run, that are parked, that wait after failures; the start of '
  'the oldest that may.  No count reads more than `most` rows.';

revoke execute on function stampd.task_next(text, bigint), stampd.tasks_due_of_domains(int, bigint),
  stampd.tasks_due(int, bigint), stampd.tasks_running(),
  stampd.task_put_back(text, bigint, int, bigint, boolean, text, text, bigint),
  stampd.task_create(text, text, bigint, text, int, int, text, text, int), stampd.task_move(text, bigint),
  stampd.task_run(text), stampd.task_hold(text), stampd.task_drop(text), stampd.task_purge_history(bigint, int),
  stampd.task_backlog(int) from public;
grant execute on function stampd.task_next(text, bigint), stampd.tasks_due_of_domains(int, bigint),
  stampd.tasks_due(int, bigint), stampd.tasks_running(),
  stampd.task_put_back(text, bigint, int, bigint, boolean, text, text, bigint),
  stampd.task_create(text, text, bigint, text, int, int, text, text, int), stampd.task_move(text, bigint),
  stampd.task_run(text), stampd.task_hold(text), stampd.task_drop(text), stampd.task_purge_history(bigint, int),
  stampd.task_backlog(int) to stampd;
