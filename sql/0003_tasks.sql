-- Tasks: operations to be run later, and what became of them.  doc/reference/tasks.md describes the model and who does what.
--
-- A task waits (starttime null) or runs (starttime set).  One that waits until the end of the century is parked: only an
-- administrator starts it.  Claiming is an update by primary key; queries for due tasks read indexes whose predicates leave out
-- what runs, what is parked, and tasks that wait for the turn of their domain.

create sequence stampd.task_number;
comment on sequence stampd.task_number is 'Order of creation, for tasks with equal starts.';

-- Without checks: every statement that writes a row would parse them anew.  The writers keep the rules.
create table stampd.taskqueue (
  taskid     text collate "C" primary key,
  number     bigint not null default nextval('stampd.task_number'),
  opname     text collate "C" not null,
  param      text not null,
  info       text collate "C" not null default '',
  retry      int not null default 0,
  startat    bigint not null,
  starttime  bigint,
  holder     text collate "C",
  qn         smallint not null default 0,
  priority   smallint not null default 20,
  batch      smallint not null default 1,
  resource   text collate "C",
  domain     text collate "C",
  step       int not null default 0,
  checkpoint text,
  exc        text,
  report     text,
  created    bigint not null,
  cron       text collate "C",
  plan       text collate "C",
  strict     boolean not null default false,
  requester      bigint,
  account    text collate "C",
  credential text collate "C",
  of_client  boolean not null default false,
  latest     bigint,
  parked     bigint,
  reported   smallint not null default 0,
  expires    bigint,
  progress   text,
  key        text collate "C",
  trace      text collate "C",
  follows    text collate "C"
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 10000);
comment on table stampd.taskqueue is
  'Tasks: operations to be run later.  A task is written by the commit of the operation that requests it, and deleted by its '
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
comment on column stampd.taskqueue.cron is 'The rule of which it is the task; null: it is not periodic.';
comment on column stampd.taskqueue.plan is 'Period and time zone by which its start was chosen.';
comment on column stampd.taskqueue.strict is 'In its domain it starts after all that were created before it with strict order.';
comment on column stampd.taskqueue.requester is 'The limited client that requested it: its address as a number; null: no limited client did.';
comment on column stampd.taskqueue.account is
  'The account on whose behalf it was requested; null: nobody had signed in, or it is the server''s.';
comment on column stampd.taskqueue.credential is 'What the account had signed in with: session, key (a service key) or token END ISSUER ROLE…';
comment on column stampd.taskqueue.of_client is
  'A client requested it: it runs with the rights that the account, or anybody, has then; false: with all rights.';
comment on column stampd.taskqueue.latest is 'Behind this start no later request for its resource moves it; null: no bound.';
comment on column stampd.taskqueue.expires is 'Stamp at which the claim of an external worker ends; null: none has claimed it.';
comment on column stampd.taskqueue.progress is 'What the external worker, or the module at its last checkpoint, says about the progress of the attempt.';
comment on column stampd.taskqueue.key is 'By which limits of its operation count it; null: none.';
comment on column stampd.taskqueue.trace is 'The header traceparent of the request that created it, and behind a blank tracestate; null: it had none.';
comment on column stampd.taskqueue.follows is
  'With expires: the attempt whose end has claimed it, as taskid, starttime and retry; null: a take has.';
comment on column stampd.taskqueue.parked is 'Stamp at which it was parked by its last failure, of one that is parked; null: never.';
comment on column stampd.taskqueue.reported is '1: its failures were reported to the administrators; 0: not since the first, or since it was parked.';

-- Discovery, in the order in which tasks are started.
create index taskqueue_due on stampd.taskqueue (qn, priority, startat, number)
  where starttime is null and domain is null and startat < 991231235959999;
create index taskqueue_domain on stampd.taskqueue (domain, priority, startat, number)
  where starttime is null and domain is not null and startat < 991231235959999 and not strict;
create index taskqueue_strict on stampd.taskqueue (domain, number) where strict;
-- By start: of each queue of external workers, of all others together.
create index taskqueue_domain_due on stampd.taskqueue (greatest(qn, 15::smallint), startat, domain, qn)
  where starttime is null and domain is not null and startat < 991231235959999;
-- Of external workers: from domain to domain.
create index taskqueue_taken_domain on stampd.taskqueue (qn, domain, startat)
  where starttime is null and domain is not null and startat < 991231235959999 and qn >= 16;
-- Rules that the database itself keeps.
create unique index taskqueue_resource on stampd.taskqueue (opname, resource)
  where starttime is null and resource is not null;
create unique index taskqueue_turn on stampd.taskqueue (domain)
  where starttime is not null and domain is not null;
create unique index taskqueue_cron on stampd.taskqueue (cron) where cron is not null;
-- Small ones: what runs (and when claims of external workers end), what has failed and is to be reported, what a client has requested.
-- And what administrators search by.
create index taskqueue_running on stampd.taskqueue (qn, expires) where starttime is not null;
create index taskqueue_failing on stampd.taskqueue (reported, retry, startat) where starttime is null and retry > 0;
create index taskqueue_parked on stampd.taskqueue (reported, parked)
  where starttime is null and startat = 991231235959999 and parked is not null;
create index taskqueue_requester on stampd.taskqueue (requester) where requester is not null;
create index taskqueue_account on stampd.taskqueue (account) where account is not null;
-- Entered only by those that say so (startat > 0 is true of all): its order would suit a claim too, past all that waits in other queues.
create index taskqueue_start on stampd.taskqueue (startat, number) where starttime is null and startat > 0;
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
  report    text,
  result    text,
  owner     text collate "C",
  param     text,
  resource  text collate "C",
  domain    text collate "C",
  key       text collate "C",
  priority  smallint,
  batch     smallint,
  strict    boolean,
  of_client boolean,
  credential text collate "C",
  trace     text collate "C",
  holder    text collate "C"
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
comment on table stampd.task_history is 'Attempts at tasks that have ended, in the order of their ends; purged after task_history_s.';
comment on column stampd.task_history.retry is 'Which attempt it was, from 0.';
comment on column stampd.task_history.step is 'Commits that the task had made when the attempt ended.';
comment on column stampd.task_history.startat is 'Before which it was not to start.';
comment on column stampd.task_history.starttime is 'Stamp of the claim.';
comment on column stampd.task_history.stoptime is 'Stamp of the end.';
comment on column stampd.task_history.exc is 'Code of the exception; LOST; MORE: time was up between two cycles, it goes on; DROPPED; null: done.';
comment on column stampd.task_history.result is 'JSON: the answer of the operation, or what the external worker left at its end; null: none.';
comment on column stampd.task_history.owner is 'Who requested the task: an account, or # and the address of a limited client as a number; null: others.';
comment on column stampd.task_history.param is 'Of an attempt with which the task has gone: its argument, as it was stored, unless it is too large; for task_redrive.';
comment on column stampd.task_history.resource is 'This, domain, key, priority, batch, strict, of_client and credential: of the task that has gone; priority null: it has not.';
comment on column stampd.task_history.trace is 'As in taskqueue.';
comment on column stampd.task_history.holder is 'Which process, or external worker, had claimed it; null: none had.';
create index task_history_task on stampd.task_history (taskid);
create index task_history_info on stampd.task_history (info, number) where info <> '';
create index task_history_failed on stampd.task_history (number) where exc is not null;
grant select, insert, delete on stampd.task_history to stampd;

create table stampd.task_operation (
  opname      text collate "C" primary key,
  qn          smallint not null,
  batch       smallint not null,
  param_bytes int not null,
  kept_bytes  int not null default 0
);
comment on table stampd.task_operation is
  'The operations of the server that scanned last, for task_create: their queue, how many share a commit, the largest param, and the largest that the history keeps.';
grant select, insert, update, delete on stampd.task_operation to stampd;

create function stampd.task_kept(of_opname text, param text, is_whole boolean default true) returns text
  language plpgsql stable set search_path = stampd, pg_temp as $$
begin
  -- Of the server's own operations none is kept; one that is not declared any more is as any other.
  return case when case when is_whole then 1 else octet_length(param) end <= coalesce(
                     (select o.kept_bytes from task_operation o where o.opname = of_opname),
                     (select o.kept_bytes from task_operation o where o.opname = 'put'), 0)
                   and (param like '~%' or not exists (select from data_key)) then param end;
end $$;
comment on function stampd.task_kept(text, text, boolean) is
  'The argument of a task that has gone without having been done, for the history, whole or as that of one that was done; null: none is kept.  What is encrypted stays so.';

-- --- starts in the past ---
--
-- A scan reads no start before the bound that the scan before it has found (doc/explanation/why-tasks-happen-once.md).  The bound
-- holds for tasks that begin to wait with a start of the last 30 seconds (as in the statement TASK_OLDEST) or later.  Others leave a
-- mark.  The conditions are those of stamp_of, which each commit that creates a task would have to parse.

create table stampd.task_early (
  one  boolean primary key default true check (one),
  mark bigint not null
);
comment on table stampd.task_early is
  'At most one row: scans that know another mark read all that waits.';
comment on column stampd.task_early.mark is
  'The last transaction that made a task wait with a start of more than 30 seconds before.';
grant select, insert, update on stampd.task_early to stampd;

create function stampd.task_early_mark() returns trigger
  language plpgsql set search_path = stampd, pg_temp as $$
begin
  if tg_op = 'UPDATE' and (
       (old.starttime is null and new.startat >= old.startat)
       or new.startat >= to_char(clock_timestamp() at time zone 'UTC' - interval '30 seconds', 'YYMMDDHH24MISSMS')::bigint) then
    return null;
  end if;
  if not exists (select from task_early e where e.mark = pg_current_xact_id()::text::bigint) then
    insert into task_early as e (mark) values (pg_current_xact_id()::text::bigint)
      on conflict (one) do update set mark = excluded.mark;
  end if;
  return null;
end $$;
comment on function stampd.task_early_mark() is 'Trigger: the start lies in the past, scans must not skip it.';
create trigger task_made_early after insert on stampd.taskqueue
  for each row when (new.starttime is null and new.startat < to_char(clock_timestamp() at time zone 'UTC' - interval '30 seconds', 'YYMMDDHH24MISSMS')::bigint)
  execute function stampd.task_early_mark();
comment on trigger task_made_early on stampd.taskqueue is 'For scans: doc/explanation/why-tasks-happen-once.md.';
-- With a short condition: each claim parses it.
create trigger task_moved_early after update of startat, starttime on stampd.taskqueue
  for each row when (new.starttime is null)
  execute function stampd.task_early_mark();
comment on trigger task_moved_early on stampd.taskqueue is 'For scans: doc/explanation/why-tasks-happen-once.md.';

-- --- what is due ---
--
-- The plans are index scans whatever the statistics are: a queue fills and empties faster than it is analysed.

create function stampd.task_next(of_domain text, before bigint, stopped text[] default null) returns text
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  level smallint := -1;
  head  taskqueue; -- the first of those with strict order, whatever its state
  free  taskqueue;
  paused constant text[] := coalesce(stopped, task_stopped(before));
begin
  select * into head from taskqueue t where t.strict and t.domain = of_domain order by t.number limit 1;
  if head.starttime is not null or head.startat > before or task_is_paused(paused, head.qn, head.opname, head.key) then
    head := null;
  end if;
  loop
    select t.priority into level from taskqueue t
      where t.starttime is null and t.domain = of_domain and t.startat < 991231235959999 and not t.strict and t.priority > level
      order by t.priority limit 1;
    if not found or level > head.priority then
      return head.taskid;
    end if;
    select * into free from taskqueue t
      where t.starttime is null and t.domain = of_domain and t.startat < 991231235959999 and not t.strict
        and t.priority = level and t.startat <= before and not task_is_paused(paused, t.qn, t.opname, t.key)
      order by t.startat, t.number limit 1;
    if found then
      return case when (head.priority, head.startat, head.number) < (free.priority, free.startat, free.number) then head.taskid
                  else free.taskid end;
    end if;
  end loop;
end $$;
comment on function stampd.task_next(text, bigint, text[]) is
  'The task of a domain whose turn it is: of those that may start at `before`, the first by priority, start, creation; of those '
  'with strict order only the first created can be it, and none that is paused (`stopped`; null: task_stopped is called).';
create function stampd.task_later(of_domain text, present bigint, until bigint, stopped text[] default null) returns text
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  level smallint := -1;
  first taskqueue;
  other taskqueue;
  paused constant text[] := coalesce(stopped, task_stopped(until));
begin
  select * into first from taskqueue t where t.domain = of_domain and t.strict order by t.number limit 1;
  if first.starttime is not null or first.startat <= present or first.startat > until
      or task_is_paused(paused, first.qn, first.opname, first.key) then
    first := null;
  end if;
  loop
    select t.priority into level from taskqueue t
      where t.starttime is null and t.domain = of_domain and t.startat < 991231235959999 and not t.strict and t.priority > level
      order by t.priority limit 1;
    exit when not found;
    select * into other from taskqueue t
      where t.starttime is null and t.domain = of_domain and t.startat < 991231235959999 and not t.strict
        and t.priority = level and t.startat > present and t.startat <= until and not task_is_paused(paused, t.qn, t.opname, t.key)
      order by t.startat, t.number limit 1;
    if found and (first.taskid is null or other.startat < first.startat) then
      first := other;
    end if;
  end loop;
  return first.taskid;
end $$;
comment on function stampd.task_later(text, bigint, bigint, text[]) is
  'The task of a domain that may start first after `present`, not after `until`; null: there is none.  Of those with strict order only '
  'the first created can be it, and none that is paused.  As long as task_next has none, it is the one to wait for.';
create type stampd.task_due as (
  taskid text, opname text, qn smallint, priority smallint, startat bigint, retry int, batch smallint, domain text, key text);
create function stampd.tasks_due_of_domains(most int, before bigint, since bigint, paused text[], present bigint) returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  first_due constant text[] := array(
    select t.domain from taskqueue t
      where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and greatest(t.qn, 15::smallint) = 15
        and t.startat <= before and t.startat >= since
      order by t.startat limit 1000);
  is_whole constant boolean := cardinality(first_due) < 1000;
  domains  constant text[] := array(select distinct f.domain from unnest(first_due) f(domain) order by f.domain);
  name  text := '';
  nth   int := 0;
  given int := 0;
  chosen task_due;
begin
  -- Few are due: their domains are in the list.  Many: step from domain to domain along the indexes.
  while given < most loop
    if is_whole then
      nth := nth + 1;
      name := domains[nth];
    else
      name := (select min(d.domain) from (
        (select t.domain from taskqueue t
           where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and not t.strict and t.domain > name
             and t.qn < 16
           order by t.domain limit 1)
        union all
        (select t.domain from taskqueue t where t.strict and t.domain > name and t.qn < 16 order by t.domain limit 1)) d);
    end if;
    exit when name is null;
    continue when exists (select from taskqueue t where t.starttime is not null and t.domain = name);
    select t.taskid, t.opname, t.qn, t.priority, t.startat, t.retry, 1::smallint, t.domain, t.key into chosen
      from taskqueue t where t.qn < 16
        and t.taskid = coalesce(task_next(name, least(before, present), paused), task_later(name, present, before, paused));
    if found then
      given := given + 1;
      return next chosen;
    end if;
  end loop;
end $$;

create function stampd.task_levels(since bigint default 0) returns table (qn smallint, priority smallint)
  language sql stable rows 10 as $$
  with recursive level(qn, priority) as (
    (select t.qn, t.priority from stampd.taskqueue t
       where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.startat >= since
       order by t.qn, t.priority limit 1)
    union all
    select n.qn, n.priority from level p cross join lateral (
      select t.qn, t.priority from stampd.taskqueue t
        where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.startat >= since
          and (t.qn, t.priority) > (p.qn, p.priority)
        order by t.qn, t.priority limit 1) n
  )
  select p.qn, p.priority from level p
$$;
comment on function stampd.task_levels(bigint) is
  'The queues and priorities in which tasks without a domain wait, with starts from `since` on, by one step along the index for each.  '
  'PostgreSQL makes it a part of the query that calls it, whose settings of the planner hold.';

create function stampd.tasks_due_unlimited(most int, before bigint, since bigint, paused text[], present bigint)
  returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  until constant bigint := coalesce(before, stamp_now());
  early task_due[];
  few   constant int := 100;
begin
  -- Nothing that waits has an earlier start than `since`: by starts, so that no row is read that was done before.  Of tasks of domains
  -- that wait for their turns there may be many.
  if since > 0 then
    early := array(
      select row(t.taskid, t.opname, t.qn, t.priority, t.startat, t.retry, t.batch, t.domain, t.key)::task_due from taskqueue t
        where t.starttime is null and t.startat > 0 and t.startat >= since and t.startat <= until and t.startat < 991231235959999
        order by t.startat, t.number limit few + 1);
    if cardinality(early) <= few then
      return query
      with due as (
        select e.* from unnest(early) e where e.domain is null and e.qn < 16 and not task_is_paused(paused, e.qn, e.opname, e.key)
        union all
        select o.* from tasks_due_of_domains(most, until, since, paused, present) o
      ), ranked as (
        select d.*, row_number() over (partition by d.qn order by d.priority, d.startat) as rank from due d
      )
      select r.taskid, r.opname, r.qn, r.priority, r.startat, r.retry, r.batch, r.domain, r.key from ranked r
        where r.rank <= most order by r.qn, r.priority, r.startat;
      return;
    end if;
  end if;
  -- Many wait: along each queue and priority.
  return query
  with due as (
    select d.* from (select l.* from task_levels(since) l where l.qn < 16 and 'queue ' || l.qn <> all (paused)) p cross join lateral (
      select t.taskid, t.opname, t.qn, t.priority, t.startat, t.retry, t.batch, t.domain, t.key from taskqueue t
        where t.starttime is null and t.domain is null and t.startat < 991231235959999
          and t.qn = p.qn and t.priority = p.priority and t.startat >= since and t.startat <= until
          and not task_is_paused(paused, t.qn, t.opname, t.key)
        order by t.startat, t.number limit most) d
    union all
    select o.* from tasks_due_of_domains(most, until, since, paused, present) o
  ), ranked as (
    select d.*, row_number() over (partition by d.qn order by d.priority, d.startat) as rank from due d
  )
  select r.taskid, r.opname, r.qn, r.priority, r.startat, r.retry, r.batch, r.domain, r.key from ranked r
    where r.rank <= most order by r.qn, r.priority, r.startat;
end $$;
create function stampd.tasks_due(most int default 1000, before bigint default null, since bigint default 0, present bigint default null)
  returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp as $$
declare
  now_is constant bigint := coalesce(present, stamp_now());
begin
  if exists (select from task_limit) then
    return query select d.* from tasks_due_limited(most, coalesce(before, now_is), since, now_is) d;
  else
    return query select d.* from tasks_due_unlimited(most, coalesce(before, now_is), since, task_stopped(), now_is) d;
  end if;
end $$;
comment on function stampd.tasks_due(int, bigint, bigint, bigint) is
  'Tasks that may start at the stamp `before` (null: now), in the order queue, priority, start: at most `most` a queue, of each '
  'domain the one whose turn it is now (`present`; null: by the clock of the database), else the one that may start first; those with starts before `since` are left out, what is paused, what limits (task_limit) let start later, and the queues of external workers.  Locks nothing.';

create function stampd.tasks_running() returns setof stampd.taskqueue
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select t.* from taskqueue t where t.starttime is not null order by t.starttime
$$;
comment on function stampd.tasks_running() is 'Tasks under way, the oldest claims first.';

create function stampd.tasks_oldest(since bigint) returns bigint
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  select t.startat from taskqueue t where t.starttime is null and t.startat > 0 and t.startat >= since order by t.startat, t.number limit 1
$$;
comment on function stampd.tasks_oldest(bigint) is 'The earliest start, from `since` on, among the tasks that wait.';

-- --- alerts ---

create function stampd.tasks_unreported(failures int, most int)
  returns table (taskid text, opname text, info text, retry int, startat bigint, exc text, report text)
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  (select t.taskid, t.opname, t.info, t.retry, t.startat, t.exc, t.report from taskqueue t
     where t.starttime is null and t.startat = 991231235959999 and t.parked is not null and t.reported = 0
       and t.exc is distinct from 'HELD'
     order by t.parked limit most)
  union all
  (select t.taskid, t.opname, t.info, t.retry, t.startat, t.exc, t.report from taskqueue t
     where t.starttime is null and t.retry > 0 and t.reported = 0 and t.retry >= failures and t.startat < 991231235959999
     order by t.retry limit most)
$$;
comment on function stampd.tasks_unreported(int, int) is
  'For workers: tasks that are parked after failures, or have failed at least `failures` times, and were not reported.';

create function stampd.task_reported(id text, failures int) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  update taskqueue t set reported = 1 where t.taskid = id and t.retry = failures and t.reported = 0
$$;
comment on function stampd.task_reported(text, int) is 'For workers: these failures have been reported to the administrators.';

create function stampd.task_expire(older_than_stamp bigint, most int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from taskqueue where taskid = any (array(
      select o.taskid from (values (0::smallint), (1::smallint)) r(reported) cross join lateral (
        select t.taskid from taskqueue t
          where t.starttime is null and t.startat = 991231235959999 and t.parked is not null and t.parked < older_than_stamp
            and t.reported = r.reported and t.exc is distinct from 'HELD' and t.cron is null
          order by t.parked limit most for update skip locked) o
        limit most))
    returning *
  ), noted as (
    insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, report, owner,
        param, resource, domain, key, priority, batch, strict, of_client, credential, trace)
      select g.taskid, g.opname, g.info, g.qn, g.retry, g.step, g.startat, g.parked, stamp_now(), 'EXPIRED', g.report,
        coalesce(g.account, '#' || g.requester), task_kept(g.opname, g.param), g.resource, g.domain, g.key, g.priority, g.batch, g.strict, g.of_client,
        g.credential, g.trace from gone g
  ) select count(*) from gone
$$;
comment on function stampd.task_expire(bigint, int) is
  'Deletes tasks that were parked by their failures before the stamp, at most `most`; those that an administrator holds stay.  '
  'Returns how many.  The server does it at scans, by the setting task_parked_days.';

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
  if not found or (code = 'LOST' and held.expires > stopped) then
    return null; -- it ended, or its external worker has extended the claim
  end if;
  insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, report, owner, trace, holder)
    values (id, held.opname, held.info, held.qn, held.retry, held.step, held.startat, started, stopped, code, words,
            coalesce(held.account, '#' || held.requester), held.trace, held.holder);
  loop
    if held.resource is not null then
      -- Another waits for the same resource, with a newer param: it does this one's work, when it was requested for.  It has as many tries
      -- left as this would have.
      update taskqueue t
        set priority = least(t.priority, held.priority),
            retry = case when again < 991231235959999 then greatest(t.retry, held.retry + is_failure::int) else t.retry end
        where t.opname = held.opname and t.resource = held.resource and t.starttime is null
        returning t.startat into start;
      if found then
        delete from taskqueue t where t.taskid = id;
        return start;
      end if;
    end if;
    begin
      update taskqueue t
        set starttime = null, holder = null, expires = null, progress = null, startat = again,
            retry = t.retry + is_failure::int,
            exc = case when is_failure then code end, report = case when is_failure then words end,
            parked = case when again = 991231235959999 then stopped end,
            reported = case when again = 991231235959999 or t.retry = 0 then 0 else t.reported end
        where t.taskid = id;
      return again;
    exception when unique_violation then null; -- another has just started to wait for the resource
    end;
  end loop;
end $$;
comment on function stampd.task_put_back(text, bigint, int, bigint, boolean, text, text, bigint) is
  'For workers: ends the attempt of a task that is still the one named (claim `started`, retry `attempt`) without its success; '
  'it waits again, until `again`.  Returns the start of what waits now; null: the attempt was over.';

-- --- tasks of clients ---

create function stampd.task_admit(client bigint, most_of_client int, most int, of_account text, quotas bigint[], creating int) returns int
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  enough constant bigint := greatest(quotas[1], case when client <> 0 then most_of_client else 0 end);
  enough_of_all constant bigint := greatest(quotas[3], case when client <> 0 then most else 0 end);
  counted   bigint;
begin
  -- Who counts behind the lock sees the tasks of all who had it before.
  perform pg_advisory_xact_lock(hashtextextended('stampd tasks of clients', 0));
  if client <> 0 then
    select count(*) into counted from (select from taskqueue t where t.requester is not null and t.requester = client limit enough) c;
    if counted + creating > most_of_client then
      perform fail('ST026', json_build_array('limit_client_tasks', most_of_client::text)::text);
    elsif quotas[1] > 0 and counted + creating > quotas[1] then
      perform fail('ST026', json_build_array('quotas.address.tasks_waiting', quotas[1]::text)::text);
    end if;
  end if;
  if of_account <> '' and quotas[2] > 0 and
     (select count(*) from (select from taskqueue t where t.account is not null and t.account = of_account limit quotas[2]) c) + creating > quotas[2] then
    perform fail('ST026', json_build_array('quotas.account.tasks_waiting', quotas[2]::text)::text);
  end if;
  select count(*) into counted from (select from taskqueue t where t.requester is not null limit enough_of_all) a;
  if client <> 0 and counted + creating > most then
    perform fail('ST026', json_build_array('limit_tasks_waiting', most::text)::text);
  elsif quotas[3] > 0 then
    select counted + count(*) into counted from (
      select from taskqueue t where t.account is not null and t.requester is null limit quotas[3]) a;
    if counted + creating > quotas[3] then
      perform fail('ST026', json_build_array('quotas.namespace.tasks_waiting', quotas[3]::text)::text);
    end if;
  end if;
  return 0;
end $$;
comment on function stampd.task_admit(bigint, int, int, text, bigint[], int) is
  'For workers, in the commit that creates tasks (`creating`) for a client (0: of an address that is not counted) or an account (empty: none): ST026 if '
  'the client, the account or all together would have requested more; `quotas`: of the address, the account, the namespace, 0: no '
  'limit; the detail is JSON [limit, its value].  Such commits go one at a time until their end, so that the limits are exact.';

-- --- what scans bring ---

create function stampd.task_operations(names text[], queues int[], batches int[], bytes int, keeps int[] default '{}') returns void
  language plpgsql volatile set search_path = stampd, pg_temp
  set enable_seqscan = on set enable_sort = on set enable_hashagg = on set enable_indexscan = off set enable_indexonlyscan = off
  set enable_bitmapscan = off set jit = off as $$
declare
  declared constant text[] := array(
    select w.words from (
      select concat_ws(' ', d.name, d.qn, d.batch, bytes, coalesce(d.kept, 0)) as words from unnest(names, queues, batches, keeps) d(name, qn, batch, kept)) w
      order by w.words collate "C");
begin
  -- Nearly always everything is as declared, and nothing is locked.
  if declared is distinct from array(
      select w.words from (select concat_ws(' ', o.opname, o.qn, o.batch, o.param_bytes, o.kept_bytes) as words from task_operation o) w
        order by w.words collate "C") then
    lock table task_operation in share row exclusive mode;
    delete from task_operation o where o.opname <> all (names);
    insert into task_operation (opname, qn, batch, param_bytes, kept_bytes)
      select d.name, d.qn, d.batch, bytes, coalesce(d.kept, 0) from unnest(names, queues, batches, keeps) d(name, qn, batch, kept)
      on conflict (opname) do update set qn = excluded.qn, batch = excluded.batch, param_bytes = excluded.param_bytes, kept_bytes = excluded.kept_bytes;
  end if;
end $$;
comment on function stampd.task_operations(text[], int[], int[], int, int[]) is 'For workers: what they declare, for task_create.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.task_next(text, bigint, text[]), stampd.task_later(text, bigint, bigint, text[]),
  stampd.tasks_due_of_domains(int, bigint, bigint, text[], bigint), stampd.task_levels(bigint),
  stampd.tasks_due_unlimited(int, bigint, bigint, text[], bigint), stampd.tasks_due(int, bigint, bigint, bigint), stampd.tasks_running(), stampd.tasks_oldest(bigint), stampd.tasks_unreported(int, int),
  stampd.task_reported(text, int), stampd.task_expire(bigint, int),
  stampd.task_put_back(text, bigint, int, bigint, boolean, text, text, bigint), stampd.task_admit(bigint, int, int, text, bigint[], int),
  stampd.task_operations(text[], int[], int[], int, int[]), stampd.task_kept(text, text, boolean) to stampd;
