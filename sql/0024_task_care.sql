-- Tasks: strict order in a domain, tasks of strangers apart, alerts that are not lost, wake-ups after changes by psql, and a
-- look at what is due that does not read what is done.  tasks.md tells the rules.

alter table stampd.taskqueue
  add column strict boolean not null default false,
  add column asker  bigint,
  add column latest bigint,
  add column parked bigint,
  add column told   smallint not null default 0;
comment on column stampd.taskqueue.strict is 'In its domain it starts after all that were created before it with strict order.';
comment on column stampd.taskqueue.asker is 'The limited client that asked for it: its address, hashed; null: none did.';
comment on column stampd.taskqueue.latest is 'Behind this start no later request for its resource moves it; null: no bound.';
comment on column stampd.taskqueue.parked is 'Stamp at which it was parked by its last failure, of one that is parked; null: never.';
comment on column stampd.taskqueue.told is 'The administrators were told of its failures: 0: not since the first, or since it was parked.';

drop index stampd.taskqueue_domain;
create index taskqueue_domain on stampd.taskqueue (domain, priority, startat, number)
  where starttime is null and domain is not null and startat < 991231235959999 and not strict;
create index taskqueue_strict on stampd.taskqueue (domain, number) where strict;
create index taskqueue_asker on stampd.taskqueue (asker) where asker is not null;
create index taskqueue_parked on stampd.taskqueue (parked)
  where starttime is null and startat = 991231235959999 and parked is not null;
create index taskqueue_untold_parked on stampd.taskqueue (parked)
  where starttime is null and startat = 991231235959999 and parked is not null and told = 0;
create index taskqueue_untold on stampd.taskqueue (retry) where starttime is null and retry > 0 and told = 0;

-- --- what is due ---

create or replace function stampd.task_next(of_domain text, before bigint) returns text
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  level smallint := -1;
  head  taskqueue; -- the first of those with strict order, whatever its state
  free  taskqueue;
begin
  select * into head from taskqueue t where t.strict and t.domain = of_domain order by t.number limit 1;
  if head.starttime is not null or head.startat > before then
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
        and t.priority = level and t.startat <= before
      order by t.startat, t.number limit 1;
    if found then
      return case when (head.priority, head.startat, head.number) < (free.priority, free.startat, free.number) then head.taskid
                  else free.taskid end;
    end if;
  end loop;
end $$;
comment on function stampd.task_next(text, bigint) is
  'The task of a domain whose turn it is: of those that may start at `before`, the first by priority, start, creation; of those '
  'with strict order only the first created can be it.';

drop function stampd.tasks_due(int, bigint);
drop function stampd.tasks_due_of_domains(int, bigint);

create function stampd.tasks_due_of_domains(most int, before bigint, since bigint) returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  first_due constant text[] := array(
    select t.domain from taskqueue t
      where t.starttime is null and t.domain is not null and t.startat < 991231235959999
        and t.startat <= before and t.startat >= since
      order by t.startat limit 1000);
  is_whole constant boolean := cardinality(first_due) < 1000;
  domains  constant text[] := array(select distinct f.domain from unnest(first_due) f(domain) order by f.domain);
  name  text := '';
  place int := 0;
  given int := 0;
  chosen task_due;
begin
  -- Few are due: their domains are known.  Many: step from domain to domain along the indexes.
  while given < most loop
    if is_whole then
      place := place + 1;
      name := domains[place];
    else
      name := (select min(d.domain) from (
        (select t.domain from taskqueue t
           where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and not t.strict and t.domain > name
           order by t.domain limit 1)
        union all
        (select t.domain from taskqueue t where t.strict and t.domain > name order by t.domain limit 1)) d);
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

create function stampd.tasks_due(most int default 1000, before bigint default null, since bigint default 0)
  returns setof stampd.task_due
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  until constant bigint := coalesce(before, stamp_now());
  early task_due[];
begin
  -- Nothing that waits has an earlier start than `since`: by starts, so that no row is read that was done before.
  if since > 0 then
    early := array(
      select row(t.taskid, t.opname, t.qn, t.priority, t.startat, t.retry, t.batch, t.domain)::task_due from taskqueue t
        where t.starttime is null and t.startat >= since and t.startat <= until and t.startat < 991231235959999
          and t.domain is null
        order by t.startat, t.number limit 2 * most + 1);
    if cardinality(early) <= 2 * most then
      return query
      with due as (
        select e.* from unnest(early) e
        union all
        select o.* from tasks_due_of_domains(most, until, since) o
      ), ranked as (
        select d.*, row_number() over (partition by d.qn order by d.priority, d.startat) as rank from due d
      )
      select r.taskid, r.opname, r.qn, r.priority, r.startat, r.retry, r.batch, r.domain from ranked r
        where r.rank <= most order by r.qn, r.priority, r.startat;
      return;
    end if;
  end if;
  -- Many wait: along each queue and priority.
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
          and t.qn = p.qn and t.priority = p.priority and t.startat >= since and t.startat <= until
        order by t.startat, t.number limit most) d
    union all
    select o.* from tasks_due_of_domains(most, until, since) o
  ), ranked as (
    select d.*, row_number() over (partition by d.qn order by d.priority, d.startat) as rank from due d
  )
  select r.taskid, r.opname, r.qn, r.priority, r.startat, r.retry, r.batch, r.domain from ranked r
    where r.rank <= most order by r.qn, r.priority, r.startat;
end $$;
comment on function stampd.tasks_due(int, bigint, bigint) is
  'Tasks that may start at the stamp `before` (null: now), in the order queue, priority, start: at most `most` a queue, of each '
  'domain the one whose turn it is; those with starts before `since` are left out.  Locks nothing.';

create function stampd.tasks_oldest(since bigint) returns bigint
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  select t.startat from taskqueue t where t.starttime is null and t.startat >= since order by t.startat, t.number limit 1
$$;
comment on function stampd.tasks_oldest(bigint) is 'The earliest start, from `since` on, among the tasks that wait.';

-- --- alerts ---

create function stampd.tasks_untold(failures int, most int)
  returns table (taskid text, opname text, info text, retry int, startat bigint, exc text, report text)
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  (select t.taskid, t.opname, t.info, t.retry, t.startat, t.exc, t.report from taskqueue t
     where t.starttime is null and t.startat = 991231235959999 and t.parked is not null and t.told = 0
       and t.exc is distinct from 'HELD'
     order by t.parked limit most)
  union all
  (select t.taskid, t.opname, t.info, t.retry, t.startat, t.exc, t.report from taskqueue t
     where t.starttime is null and t.retry > 0 and t.told = 0 and t.retry >= failures and t.startat < 991231235959999
     order by t.retry limit most)
$$;
comment on function stampd.tasks_untold(int, int) is
  'For workers: tasks that are parked after failures, or have failed at least `failures` times, and of which nobody was told.';

create function stampd.task_told(id text, failures int) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  update taskqueue t set told = 1 where t.taskid = id and t.retry = failures and t.told = 0
$$;
comment on function stampd.task_told(text, int) is 'For workers: the administrators have been told that it has failed so often.';

create function stampd.task_expire(older_than_stamp bigint, most int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from taskqueue where taskid = any (array(
      select t.taskid from taskqueue t
        where t.starttime is null and t.startat = 991231235959999 and t.parked is not null and t.parked < older_than_stamp
          and t.exc is distinct from 'HELD' and t.cron is null
        order by t.parked limit most for update skip locked))
    returning *
  ), noted as (
    insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, report)
      select g.taskid, g.opname, g.info, g.qn, g.retry, g.step, g.startat, g.parked, stamp_now(), 'EXPIRED', g.report from gone g
  ) select count(*) from gone
$$;
comment on function stampd.task_expire(bigint, int) is
  'Deletes tasks that were parked by their failures before the stamp, at most `most`; those that an administrator holds stay.  '
  'Returns how many.  The server does it at scans, by the setting task_parked_days.';

-- --- ends that are no success ---

create or replace function stampd.task_put_back(id text, started bigint, attempt int, again bigint, is_failure boolean,
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
            exc = case when is_failure then code end, report = case when is_failure then words end,
            parked = case when again = 991231235959999 then stopped end,
            told = case when again = 991231235959999 or t.retry = 0 then 0 else t.told end
        where t.taskid = id;
      return again;
    exception when unique_violation then null; -- one has begun to wait for the resource just now
    end;
  end loop;
end $$;

-- --- what clients ask for ---

create function stampd.tasks_asked(client bigint, most_of_client int, most int) returns table (of_client bigint, of_all bigint)
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  select (select count(*) from (select from taskqueue t where t.asker is not null and t.asker = client limit most_of_client) c),
         (select count(*) from (select from taskqueue t where t.asker is not null limit most) a)
$$;
comment on function stampd.tasks_asked(bigint, int, int) is
  'For workers: how many tasks that clients have asked for there are, of one client and of all, counted so far.';

-- --- administrators' functions ---

create table stampd.task_operation (
  opname      text collate "C" primary key,
  qn          smallint not null,
  batch       smallint not null,
  param_bytes int not null
);
comment on table stampd.task_operation is
  'The operations of the server that scanned last, for task_create: their queue, how many share a commit, the largest param.';
grant select, insert, update, delete on stampd.task_operation to stampd;

create function stampd.task_operations(names text[], queues int[], batches int[], bytes int) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  -- Nearly always everything is as declared, and nothing is locked.
  if exists (select from unnest(names, queues, batches) d(name, qn, batch) left join task_operation o on o.opname = d.name
               where (o.qn, o.batch, o.param_bytes) is distinct from (d.qn::smallint, d.batch::smallint, bytes))
     or (select count(*) from task_operation) <> cardinality(names) then
    lock table task_operation in share row exclusive mode;
    delete from task_operation o where o.opname <> all (names);
    insert into task_operation (opname, qn, batch, param_bytes)
      select d.name, d.qn, d.batch, bytes from unnest(names, queues, batches) d(name, qn, batch)
      on conflict (opname) do update set qn = excluded.qn, batch = excluded.batch, param_bytes = excluded.param_bytes;
  end if;
end $$;
comment on function stampd.task_operations(text[], int[], int[], int) is 'For workers: what they declare, for task_create.';

create function stampd.stamp_is_valid(stamp bigint) returns boolean
  language plpgsql immutable set search_path = stampd, pg_temp as $$
declare
  year   constant int := 2000 + stamp / 10000000000000;
  month  constant int := stamp / 100000000000 % 100;
  day    constant int := stamp / 1000000000 % 100;
  hour   constant int := stamp / 10000000 % 100;
  minute constant int := stamp / 100000 % 100;
  second constant int := stamp / 1000 % 100;
begin
  if stamp not between 101000000000 and 991231235959999 or month not between 1 and 12 or day not between 1 and 31
     or hour > 23 or minute > 59 or second > 59 then
    return false;
  end if;
  return day <= extract(day from make_date(year, month, 1) + interval '1 month - 1 day');
end $$;
comment on function stampd.stamp_is_valid(bigint) is 'Is the number a stamp, yymmddhhmmssmmm, of a day that there is?';

create function stampd.task_tell(start bigint) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  if start <= stamp_of(now() + interval '1 hour') then
    notify stampd_task;
  end if;
end $$;
comment on function stampd.task_tell(bigint) is 'Wakes the queue managers at the end of the transaction, when the start is near.';

create function stampd.task_check_text(name text, value text, most int) returns void
  language plpgsql immutable set search_path = stampd, pg_temp as $$
begin
  if octet_length(value) > most then
    raise exception '% has % bytes, at most % are allowed', name, octet_length(value), most using errcode = '22023';
  end if;
end $$;

create function stampd.task_check_param(param text, most int) returns void
  language plpgsql immutable set search_path = stampd, pg_temp as $$
declare
  brackets text;
begin
  perform task_check_text('param', param, most);
  if param is null or jsonb_typeof(param::jsonb) <> 'object' then -- as jsonb, which refuses \u0000 as the server does
    raise exception 'param is a JSON object' using errcode = '22023';
  end if;
  brackets := regexp_replace(regexp_replace(param, '"([^"\\]|\\.)*"', '', 'g'), '[^][{}]', '', 'g');
  for level in 1 .. 32 loop
    exit when brackets = '';
    brackets := replace(replace(brackets, '[]', ''), '{}', '');
  end loop;
  if brackets <> '' then
    raise exception 'param is nested deeper than 32 levels' using errcode = '22023';
  end if;
end $$;

drop function stampd.task_create(text, text, bigint, text, int, int, text, text, int);
create function stampd.task_create(opname text, param text default '{}', startat bigint default null, info text default '',
                                   qn int default null, priority int default 20, resource text default null,
                                   domain text default null, batch int default null, strict boolean default false) returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  made  constant bigint := stamp_now();
  start constant bigint := coalesce(task_create.startat, made);
  known task_operation;
  kept  text;
begin
  select * into known from task_operation o where o.opname = task_create.opname;
  if task_create.opname !~ '^[A-Za-z][A-Za-z0-9_.-]{0,31}$' then
    raise exception 'not a name of an operation: %', task_create.opname using errcode = '22023';
  elsif task_create.qn not between 0 and 15 or task_create.priority not between 0 and 255
        or task_create.batch not between 1 and 1000 then
    raise exception 'qn is 0 to 15, priority 0 to 255, batch 1 to 1000' using errcode = '22023';
  elsif start >= 991231235959999 or not stamp_is_valid(start) then
    raise exception 'startat is no stamp (yymmddhhmmssmmm, UTC) before the end of the century: %', start using errcode = '22023';
  elsif task_create.strict and task_create.domain is null then
    raise exception 'strict order is that of a domain' using errcode = '22023';
  end if;
  perform task_check_param(task_create.param, coalesce(known.param_bytes, 65536)),
    task_check_text('info', task_create.info, 272), task_check_text('resource', task_create.resource, 272),
    task_check_text('domain', task_create.domain, 255); -- 272: the name of a document with its class
  insert into taskqueue as t (taskid, opname, param, info, startat, qn, priority, resource, domain, batch, created, strict)
    values (substr(translate(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 1, 40), task_create.opname,
            task_create.param, coalesce(task_create.info, ''), start, coalesce(task_create.qn, known.qn, 0),
            coalesce(task_create.priority, 20), task_create.resource, task_create.domain,
            case when task_create.domain is null then coalesce(task_create.batch, known.batch, 1) else 1 end, made,
            coalesce(task_create.strict, false))
    on conflict (opname, resource) where starttime is null and resource is not null do update
      set param = excluded.param, info = excluded.info, priority = least(t.priority, excluded.priority),
          startat = case when t.startat < 991231235959999 or t.exc = 'HELD'
                         then greatest(t.startat, least(excluded.startat, coalesce(t.latest, excluded.startat)))
                         else excluded.startat end,
          retry = case when t.startat = 991231235959999 and t.exc is distinct from 'HELD' then 0 else t.retry end,
          exc = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.exc end,
          report = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.report end
    returning t.taskid into kept;
  perform task_tell(start);
  return kept;
end $$;
comment on function stampd.task_create(text, text, bigint, text, int, int, text, text, int, boolean) is
  'A new task; startat null: at once; qn and batch null: as the server declares the operation.  When one of the operation waits for '
  'the resource already, that one takes the new param, the later start and the smaller priority.  Returns the taskid.';

create or replace function stampd.task_move(taskid text, startat bigint) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held taskqueue;
begin
  if task_move.startat >= 991231235959999 or not stamp_is_valid(task_move.startat) then
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
  perform task_tell(task_move.startat);
  return task_move.startat;
end $$;

create or replace function stampd.task_drop(taskid text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held taskqueue;
begin
  delete from taskqueue t where t.taskid = task_drop.taskid returning t.* into held;
  if not found then
    return false;
  end if;
  insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, report)
    values (held.taskid, held.opname, held.info, held.qn, held.retry, held.step, held.startat, coalesce(held.starttime, stamp_now()),
            stamp_now(), 'DROPPED', held.report);
  if held.domain is not null then
    perform task_tell(0); -- another may have waited behind it
  end if;
  return true;
end $$;

create or replace function stampd.task_attempts(taskid text default null, opname text default null, info text default null,
                                     failures boolean default false, since bigint default 0,
                                     until bigint default 991231235959999, most int default 100, before_number bigint default null)
  returns setof stampd.task_history
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  info_end constant text := task_attempts.info || repeat(chr(1114111), 64);
  behind constant bigint := coalesce(before_number, 9223372036854775807);
  ends constant text[] := '{MORE,DROPPED,EXPIRED}'; -- that are no failures
begin
  if task_attempts.taskid is not null then
    return query select h.* from (select t.* from task_history t where t.taskid = task_attempts.taskid offset 0) h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname)
        and (coalesce(task_attempts.info, '') = '' or starts_with(h.info, task_attempts.info))
        and (not failures or coalesce(h.exc, 'MORE') <> all (ends)) and h.stoptime between since and until
      order by h.number desc limit most;
  elsif task_attempts.info <> '' then
    return query select h.* from (
      select t.* from task_history t
        where t.info <> '' and t.info >= task_attempts.info and t.info < info_end and starts_with(t.info, task_attempts.info)
        offset 0) h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname)
        and (not failures or coalesce(h.exc, 'MORE') <> all (ends)) and h.stoptime between since and until
      order by h.number desc limit most;
  elsif failures then
    return query select h.* from task_history h
      where h.exc is not null and h.exc <> all (ends) and h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname) and h.stoptime between since and until
      order by h.number desc limit most;
  else
    return query select h.* from task_history h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname) and h.stoptime between since and until
      order by h.number desc limit most;
  end if;
end $$;

create function stampd.cron_tell() returns trigger
  language plpgsql set search_path = stampd, pg_temp as $$
begin
  if session_user <> 'stampd' then
    perform task_tell(0);
  end if;
  return null;
end $$;
create trigger cron_tell after insert or update or delete on stampd.cron for each statement execute function stampd.cron_tell();

revoke execute on function stampd.tasks_due_of_domains(int, bigint, bigint), stampd.tasks_due(int, bigint, bigint),
  stampd.tasks_oldest(bigint), stampd.tasks_untold(int, int), stampd.task_told(text, int), stampd.task_expire(bigint, int),
  stampd.tasks_asked(bigint, int, int), stampd.task_operations(text[], int[], int[], int), stampd.stamp_is_valid(bigint),
  stampd.task_tell(bigint), stampd.task_check_text(text, text, int), stampd.task_check_param(text, int), stampd.cron_tell(),
  stampd.task_create(text, text, bigint, text, int, int, text, text, int, boolean) from public;
grant execute on function stampd.tasks_due_of_domains(int, bigint, bigint), stampd.tasks_due(int, bigint, bigint),
  stampd.tasks_oldest(bigint), stampd.tasks_untold(int, int), stampd.task_told(text, int), stampd.task_expire(bigint, int),
  stampd.tasks_asked(bigint, int, int), stampd.task_operations(text[], int[], int[], int), stampd.stamp_is_valid(bigint),
  stampd.task_tell(bigint), stampd.task_check_text(text, text, int), stampd.task_check_param(text, int), stampd.cron_tell(),
  stampd.task_create(text, text, bigint, text, int, int, text, text, int, boolean) to stampd;
