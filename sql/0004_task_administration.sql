-- Tasks for administrators: to create, move, hold and drop them; pages of what waits, runs and has ended, by filters; numbers that are
-- cheap however many wait.  doc/reference/tasks.md, "Administration".
--
-- Every query follows an index whatever the statistics are, as those of 0003 do.

-- --- waking the queue managers ---

create function stampd.task_notify(start bigint) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  if start <= stamp_of(now() + interval '1 hour') then
    notify stampd_task;
  end if;
end $$;
comment on function stampd.task_notify(bigint) is 'Wakes the queue managers at the end of the transaction, when the start is near.';

-- Rows that somebody writes by hand are seen like those of the functions.  Sessions of workers set stampd.worker (on or off) and wake
-- the managers by themselves; a later start needs no wake-up.

create function stampd.task_written() returns trigger
  language plpgsql set search_path = stampd, pg_temp as $$
begin
  perform task_notify(new.startat);
  return null;
end $$;
comment on function stampd.task_written() is 'Trigger: wakes the queue managers for a task that starts soon.';
create trigger task_made after insert on stampd.taskqueue
  for each row when (coalesce(current_setting('stampd.worker', true), '') = '' and new.starttime is null)
  execute function stampd.task_written();
comment on trigger task_made on stampd.taskqueue is 'For programs that insert tasks without task_create().';
create trigger task_moved after update of startat on stampd.taskqueue
  for each row when (coalesce(current_setting('stampd.worker', true), '') = '' and new.starttime is null
    and new.startat < old.startat)
  execute function stampd.task_written();
comment on trigger task_moved on stampd.taskqueue is 'For programs that move the start of a task without task_move().';

-- --- one task ---

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

create function stampd.task_create(opname text, param text default '{}', startat bigint default null, info text default '',
                                   qn int default null, priority int default 20, resource text default null,
                                   domain text default null, batch int default null, strict boolean default false, key text default null) returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  made  constant bigint := stamp_now();
  start constant bigint := coalesce(task_create.startat, made);
  declared task_operation;
  kept  text;
begin
  select * into declared from task_operation o where o.opname = task_create.opname;
  if task_create.opname !~ '^[A-Za-z][A-Za-z0-9_.-]{0,31}$' then
    raise exception 'not a name of an operation: %', task_create.opname using errcode = '22023';
  elsif task_create.qn not between 0 and 31 or task_create.priority not between 0 and 255
        or task_create.batch not between 1 and 1000 then
    raise exception 'qn is 0 to 31, priority 0 to 255, batch 1 to 1000' using errcode = '22023';
  elsif start >= 991231235959999 or not stamp_is_valid(start) then
    raise exception 'startat is no stamp (yymmddhhmmssmmm, UTC) before the end of the century: %', start using errcode = '22023';
  elsif task_create.strict and task_create.domain is null then
    raise exception 'strict order is that of a domain' using errcode = '22023';
  end if;
  perform task_check_param(task_create.param, coalesce(declared.param_bytes, 65536)),
    task_check_text('info', task_create.info, 272), task_check_text('resource', task_create.resource, 272),
    task_check_text('domain', task_create.domain, 255), task_check_text('key', task_create.key, 255); -- 272: the name of a document with its class
  insert into taskqueue as t (taskid, opname, param, info, startat, qn, priority, resource, domain, batch, created, strict, key)
    values (substr(translate(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 1, 40), task_create.opname,
            task_create.param, coalesce(task_create.info, ''), start, coalesce(task_create.qn, declared.qn, 0),
            coalesce(task_create.priority, 20), task_create.resource, task_create.domain,
            case when task_create.domain is null then coalesce(task_create.batch, declared.batch, 1) else 1 end, made,
            coalesce(task_create.strict, false), task_create.key)
    on conflict (opname, resource) where starttime is null and resource is not null do update
      set param = excluded.param, info = excluded.info, key = excluded.key, account = null, credential = null, trace = null, of_client = false, priority = least(t.priority, excluded.priority),
          startat = case when (t.exc is null and t.startat < 991231235959999) or t.exc = 'HELD' then greatest(t.startat, least(excluded.startat, coalesce(t.latest, excluded.startat)))
                         else excluded.startat end, -- the start of one that has failed is a delay of the server's
          latest = case when (t.exc is null and t.startat < 991231235959999) or t.exc = 'HELD' then t.latest else excluded.latest end,
          retry = case when t.startat = 991231235959999 and t.exc is distinct from 'HELD' then 0 else t.retry end,
          exc = case when t.exc = 'HELD' then t.exc end,
          report = case when t.exc = 'HELD' then t.report end
    returning t.taskid into kept;
  perform task_notify(start);
  return kept;
end $$;
comment on function stampd.task_create(text, text, bigint, text, int, int, text, text, int, boolean, text) is
  'A new task; startat null: at once; qn and batch null: as the server declares the operation.  When one of the operation waits for '
  'the resource already, that one takes the new param, the later start and the smaller priority.  Returns the taskid.';

create function stampd.task_move(taskid text, startat bigint) returns bigint
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
  -- A task that an administrator starts again is tried as often as a new one.
  update taskqueue t
    set startat = task_move.startat,
        retry = case when held.startat = 991231235959999 then 0 else t.retry end,
        exc = case when held.startat = 991231235959999 then null else t.exc end,
        report = case when held.startat = 991231235959999 then null else t.report end
    where t.taskid = task_move.taskid;
  perform task_notify(task_move.startat);
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

create function stampd.task_end_without(taskid text, owner text, code text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held taskqueue;
begin
  delete from taskqueue t where t.taskid = task_end_without.taskid
      and (task_end_without.owner is null or coalesce(t.account, '#' || t.requester) = task_end_without.owner)
    returning t.* into held;
  if not found then
    return false;
  end if;
  insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, report, owner,
      param, resource, domain, key, priority, batch, strict, of_client, credential, trace, holder)
    values (held.taskid, held.opname, held.info, held.qn, held.retry, held.step, held.startat, coalesce(held.starttime, stamp_now()),
            stamp_now(), task_end_without.code, held.report, coalesce(held.account, '#' || held.requester),
            -- What clients request and cancel again and again must not fill the history.
            case when held.cron is null then task_kept(held.opname, held.param, task_end_without.code <> 'CANCELLED') end,
            held.resource, held.domain, held.key,
            case when held.cron is null then held.priority end, held.batch, held."strict", held.of_client, held.credential, held.trace, held.holder);
  if held.domain is not null then
    perform task_notify(0); -- another may have waited behind it
  end if;
  return true;
end $$;
comment on function stampd.task_end_without(text, text, text) is
  'Deletes a task, of the owner if one is named, and records the code.  False: there is none.';

create function stampd.task_drop(taskid text) returns boolean
  language sql volatile set search_path = stampd, pg_temp as $$
  select task_end_without($1, null, 'DROPPED')
$$;
comment on function stampd.task_drop(text) is
  'Deletes a task.  One that runs will not commit what it does.  False: there is no such task.';

create function stampd.task_purge_history(older_than_stamp bigint, batch int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from task_history where ctid = any (array(
      select f.ctid from (select h.ctid, h.stoptime from task_history h order by h.number limit task_purge_history.batch) f
        where f.stoptime < older_than_stamp))
    returning 1
  ) select count(*) from gone
$$;
comment on function stampd.task_purge_history(bigint, int) is
  'Purges attempts that ended before the stamp, out of the `batch` oldest.  Returns how many; call again until it returns 0.  '
  'The server does it at each scan.';

-- --- lists and numbers ---

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
                                 after_start bigint default -1, after_number bigint default 0,
                                 states text[] default null, exc text default null, domain text default null,
                                 begun_since bigint default 0, begun_until bigint default 991231235959999)
  returns setof stampd.taskqueue
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  -- Behind all texts that begin so.
  info_end constant text := task_list.info || repeat(chr(1114111), 64);
  -- What the states say of the start of a task that does not run.
  first_start constant bigint := case when states <@ '{parked,held,running}' then greatest(since, 991231235959999) else since end;
  last_start  constant bigint := case when states <@ '{waiting,running}' then least(until, 991231235959998) else until end;
  -- The index is entered at one place: behind the page before, or at the first start.
  low_start   constant bigint := greatest(after_start, first_start - 1);
  low_number  constant bigint := case when after_start >= first_start then after_number else 9223372036854775807 end;
begin
  if begun_since > 0 or begun_until < 991231235959999 then -- tasks that run are few
    return query select f.* from (
      select t.* from taskqueue t where t.starttime is not null offset 0) f
      where f.starttime between begun_since and begun_until
        and (task_list.opname is null or f.opname = task_list.opname) and f.retry >= task_list.retry
        and (coalesce(task_list.info, '') = '' or starts_with(f.info, task_list.info))
        and (states is null or task_state(f) = any (states)) and (task_list.exc is null or f.exc = task_list.exc)
        and (task_list.domain is null or f.domain = task_list.domain)
        and f.startat between since and until and (f.startat, f.number) > (after_start, after_number)
      order by f.startat, f.number limit most;
  elsif task_list.info <> '' then
    return query select f.* from (
      select t.* from taskqueue t
        where t.info <> '' and t.info >= task_list.info and t.info < info_end and starts_with(t.info, task_list.info)
        offset 0) f
      where (task_list.opname is null or f.opname = task_list.opname) and f.retry >= task_list.retry
        and (states is null or task_state(f) = any (states)) and (task_list.exc is null or f.exc = task_list.exc)
        and (task_list.domain is null or f.domain = task_list.domain)
        and f.startat between since and until and (f.startat, f.number) > (after_start, after_number)
      order by f.startat, f.number limit most;
  elsif task_list.retry > 0 then
    return query select f.* from (
      select t.* from taskqueue t where t.starttime is null and t.retry > 0 and t.reported = any ('{0,1}') and t.retry >= task_list.retry
      union all
      select t.* from taskqueue t where t.starttime is not null and t.retry >= task_list.retry
      offset 0) f
      where (task_list.opname is null or f.opname = task_list.opname)
        and (states is null or task_state(f) = any (states)) and (task_list.exc is null or f.exc = task_list.exc)
        and (task_list.domain is null or f.domain = task_list.domain)
        and f.startat between since and until and (f.startat, f.number) > (after_start, after_number)
      order by f.startat, f.number limit most;
  else
    return query select f.* from (
      (select t.* from taskqueue t
         where t.starttime is null and t.startat > 0 and (t.startat, t.number) > (low_start, low_number) and t.startat <= last_start
           and (task_list.opname is null or t.opname = task_list.opname)
           and (states is null or task_state(t) = any (states)) and (task_list.exc is null or t.exc = task_list.exc)
           and (task_list.domain is null or t.domain = task_list.domain)
         order by t.startat, t.number limit most)
      union all
      (select t.* from taskqueue t where t.starttime is not null
         and (task_list.opname is null or t.opname = task_list.opname)
           and (states is null or task_state(t) = any (states)) and (task_list.exc is null or t.exc = task_list.exc)
           and (task_list.domain is null or t.domain = task_list.domain)
         and t.startat between since and until and (t.startat, t.number) > (after_start, after_number))) f
      order by f.startat, f.number limit most;
  end if;
end $$;
comment on function stampd.task_list(text, text, int, bigint, bigint, int, bigint, bigint, text[], text, text, bigint, bigint) is
  'Tasks in the order of their starts, at most `most`: of the operation, whose info begins so, that failed at least `retry` times, '
  'with starts from `since` to `until`, of one of the states (task_state), whose last attempt ended with `exc`, of the domain, that run since a claim from `begun_since` to `begun_until`; null: all.  The next page begins behind the startat and the number of the last.';

create function stampd.task_do(deed text, dry boolean, opname text default null, info text default null, retry int default 0,
                               since bigint default 0, until bigint default 991231235959999, states text[] default null,
                               exc text default null, domain text default null, most int default 1000)
  returns table (matched bigint, done bigint)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  -- Of whom the deed would change something: whoever repeats it comes to an end.
  touched constant text[] := case deed when 'hold' then '{waiting,parked}' when 'run' then '{waiting,parked,held}'
                                       when 'drop' then '{waiting,running,parked,held}' end;
  wanted constant text[] := case when states is null then touched
                                 else array(select s from unnest(states) s where s = any (touched)) end;
  names text[];
  one   text;
begin
  if touched is null then
    raise exception 'a deed is run, hold or drop' using errcode = '22023';
  end if;
  names := array(select t.taskid from task_list(
    task_do.opname, task_do.info, task_do.retry, case when deed = 'run' then greatest(since, stamp_now() + 1) else since end, until,
    least(most, 1000), states => wanted, exc => task_do.exc, domain => task_do.domain) t);
  matched := cardinality(names);
  done := 0;
  if not dry then
    -- Without waiting for others: what is locked is found by the next call.
    for one in select t.taskid from taskqueue t where t.taskid = any (names) order by t.taskid for update skip locked loop
      done := done + case when deed = 'run' then (task_run(one) is not null)::int when deed = 'hold' then task_hold(one)::int
                          else task_drop(one)::int end;
    end loop;
  end if;
  return next;
end $$;
comment on function stampd.task_do(text, boolean, text, text, int, bigint, bigint, text[], text, text, int) is
  'Runs, holds or drops the tasks that task_list would list, at most `most` (1,000); `dry`: only counts them.  Those of which it would change '
  'nothing are left out: call again until none is matched.';

create function stampd.task_attempts(taskid text default null, opname text default null, info text default null,
                                     failures boolean default false, since bigint default 0,
                                     until bigint default 991231235959999, most int default 100, before_number bigint default null,
                                     begun_since bigint default 0, begun_until bigint default 991231235959999,
                                     exc text default null, holder text default null)
  returns setof stampd.task_history
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  info_end constant text := task_attempts.info || repeat(chr(1114111), 64);
  behind constant bigint := coalesce(before_number, 9223372036854775807);
  ends constant text[] := '{MORE,DROPPED,CANCELLED,EXPIRED}'; -- that are no failures
  wanted constant text := task_attempts.exc;
begin
  if task_attempts.taskid is not null then
    return query select h.* from (select t.* from task_history t where t.taskid = task_attempts.taskid offset 0) h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname)
        and (coalesce(task_attempts.info, '') = '' or starts_with(h.info, task_attempts.info))
        and (not failures or coalesce(h.exc, 'MORE') <> all (ends)) and h.stoptime between since and until
        and h.starttime between begun_since and begun_until and (wanted is null or coalesce(h.exc, 'DONE') = wanted)
        and (task_attempts.holder is null or starts_with(h.holder, task_attempts.holder))
      order by h.number desc limit most;
  elsif task_attempts.info <> '' then
    return query select h.* from (
      select t.* from task_history t
        where t.info <> '' and t.info >= task_attempts.info and t.info < info_end and starts_with(t.info, task_attempts.info)
        offset 0) h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname)
        and (not failures or coalesce(h.exc, 'MORE') <> all (ends)) and h.stoptime between since and until
        and h.starttime between begun_since and begun_until and (wanted is null or coalesce(h.exc, 'DONE') = wanted)
        and (task_attempts.holder is null or starts_with(h.holder, task_attempts.holder))
      order by h.number desc limit most;
  elsif failures or wanted <> 'DONE' then -- both have the index of what did not succeed
    return query select h.* from task_history h
      where h.exc is not null and (not failures or h.exc <> all (ends)) and h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname) and h.stoptime between since and until
        and h.starttime between begun_since and begun_until and (wanted is null or coalesce(h.exc, 'DONE') = wanted)
        and (task_attempts.holder is null or starts_with(h.holder, task_attempts.holder))
      order by h.number desc limit most;
  else
    return query select h.* from task_history h
      where h.number < behind
        and (task_attempts.opname is null or h.opname = task_attempts.opname) and h.stoptime between since and until
        and h.starttime between begun_since and begun_until and (wanted is null or coalesce(h.exc, 'DONE') = wanted)
        and (task_attempts.holder is null or starts_with(h.holder, task_attempts.holder))
      order by h.number desc limit most;
  end if;
end $$;
comment on function stampd.task_attempts(text, text, text, boolean, bigint, bigint, int, bigint, bigint, bigint, text, text) is
  'Attempts that have ended, the newest first, at most `most`: at the task, of the operation, whose info begins so, failures and '
  'losses only, that ended from `since` to `until`, that began from `begun_since` to `begun_until`, that ended with `exc` (DONE: succeeded), of whose holder the name begins so; null: all.  The next page begins before the number of the last.';

create function stampd.task_redrive(dry boolean, taskid text default null, opname text default null, info text default null, exc text default null,
                                    since bigint default 0, until bigint default null, most int default 1000, after bigint default 0)
  returns table (matched bigint, done bigint, last bigint)
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  numbers bigint[];
  present constant bigint := stamp_now();
  info_end constant text := task_redrive.info || repeat(chr(1114111), 64); -- behind all texts that begin so
  most_read constant int := 10000; -- rows of one call
  is_of_info constant boolean := task_redrive.info <> '' and most_read >= (
    select count(*) from (
      select from task_history t
        where t.info <> '' and t.info >= task_redrive.info and t.info < info_end and t.number > after
        limit most_read + 1) c);
  to_number bigint; -- as far as this call reads; null: to the end
begin
  if after > 0 and until is null then
    raise exception 'a further call has the `until` of the first' using errcode = '22023';
  end if;
  if task_redrive.taskid is not null then
    numbers := array(select h.number from (select t.* from task_history t where t.taskid = task_redrive.taskid offset 0) h
      where h.priority is not null order by h.number desc limit 1);
  elsif is_of_info then
    numbers := array(select h.number from (
        select t.* from task_history t
          where t.info <> '' and t.info >= task_redrive.info and t.info < info_end and starts_with(t.info, task_redrive.info) and t.number > after
          offset 0) h
      where h.priority is not null and h.stoptime between since and coalesce(until, present)
        and (task_redrive.opname is null or h.opname = task_redrive.opname)
        and (task_redrive.exc is null or coalesce(h.exc, 'DONE') = task_redrive.exc)
      order by h.number limit least(most, 1000));
  elsif task_redrive.exc <> 'DONE' then
    to_number := (select h.number from task_history h where h.exc is not null and h.number > after order by h.number offset most_read - 1 limit 1);
    numbers := array(select h.number from task_history h
      where h.exc is not null and h.number > after and h.number <= coalesce(to_number, 9223372036854775807)
        and h.exc = task_redrive.exc and h.priority is not null and h.stoptime between since and coalesce(until, present)
        and (task_redrive.opname is null or h.opname = task_redrive.opname)
        and (task_redrive.info is null or starts_with(h.info, task_redrive.info))
      order by h.number limit least(most, 1000));
  else
    to_number := (select h.number from task_history h where h.number > after order by h.number offset most_read - 1 limit 1);
    numbers := array(select h.number from task_history h
      where h.number > after and h.number <= coalesce(to_number, 9223372036854775807)
        and h.priority is not null and h.stoptime between since and coalesce(until, present)
        and (task_redrive.opname is null or h.opname = task_redrive.opname)
        and (task_redrive.info is null or starts_with(h.info, task_redrive.info))
        and (task_redrive.exc is null or h.exc is null)
      order by h.number limit least(most, 1000));
  end if;
  matched := cardinality(numbers);
  last := coalesce(case when matched = least(most, 1000) and matched > 0 then numbers[matched] else to_number end, 0);
  done := 0;
  if not task_redrive.dry then
    insert into taskqueue (taskid, opname, param, info, startat, qn, priority, batch, resource, domain, key, created, strict, requester, account,
                           credential, of_client, trace)
      select p.taskid, p.opname, p.param, p.info, present, p.qn, p.priority, p.batch, p.resource, p.domain, p.key, present, p.strict,
          case when p.owner like '#%' then substr(p.owner, 2)::bigint end, case when p.owner not like '#%' then p.owner end,
          p.credential, p.of_client, p.trace
        from (select distinct on (h.taskid) h.* from task_history h where h.number = any (numbers) and h.param is not null
              order by h.taskid, h.number desc) p
        order by p.resource collate "C", p.opname collate "C", p.number -- as TASK_MAKE, so that neither waits in a circle
      on conflict do nothing;
    get diagnostics done = row_count;
    if done > 0 then
      perform task_notify(0);
    end if;
  end if;
  return next;
end $$;
comment on function stampd.task_redrive(boolean, text, text, text, text, bigint, bigint, int, bigint) is
  'Lets tasks that have ended run again, under their names, at most `most` (1,000): one, or those of the operation, whose info begins so, whose end '
  'was exc (DONE: a success), from `since` to `until`; `dry`: only counts.  Left out are those whose argument was not kept, that wait or run, or '
  'for whose resource another waits.  `last`: call again with it, as `after`, and an `until`, for those behind; 0: there are none.  A call '
  'reads at most 10,000 rows: it may match few though there are more.';

create function stampd.task_backlog(most int default 10000)
  returns table (qn smallint, due bigint, later bigint, running bigint, parked bigint, failing bigint, oldest bigint)
  language sql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
  with present as materialized (
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
      from task_levels() p cross join present n
    union all
    select t.qn, count(*), 0, 0, 0, 0, min(t.startat) from (select w.qn, w.startat from taskqueue w cross join present n
        where w.starttime is null and w.domain is not null and w.startat > 0 and w.startat < 991231235959999 and w.startat <= n.stamp
        order by w.startat limit most) t group by t.qn
    union all
    select t.qn, 0, count(*), 0, 0, 0, null from (select w.qn from taskqueue w cross join present n
        where w.starttime is null and w.domain is not null and w.startat > 0 and w.startat < 991231235959999 and w.startat > n.stamp
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

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.task_redrive(boolean, text, text, text, text, bigint, bigint, int, bigint) to stampd;
grant execute on function stampd.task_notify(bigint), stampd.task_check_text(text, text, int), stampd.task_check_param(text, int),
  stampd.task_create(text, text, bigint, text, int, int, text, text, int, boolean, text), stampd.task_move(text, bigint),
  stampd.task_run(text), stampd.task_hold(text), stampd.task_drop(text), stampd.task_end_without(text, text, text), stampd.task_purge_history(bigint, int),
  stampd.task_state(stampd.taskqueue), stampd.task_list(text, text, int, bigint, bigint, int, bigint, bigint, text[], text, text, bigint, bigint),
  stampd.task_do(text, boolean, text, text, int, bigint, bigint, text[], text, text, int),
  stampd.task_attempts(text, text, text, boolean, bigint, bigint, int, bigint, bigint, bigint, text, text), stampd.task_backlog(int) to stampd;
