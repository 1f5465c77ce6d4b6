-- Periodic tasks: operations that are run again and again.  doc/reference/tasks.md has the rules.
--
-- A row of `cron` is a rule.  It has at most one task, a row of `taskqueue` that bears its name: the commit that ends one
-- run of the rule makes that same row wait for the next.  Scans make what is missing and follow rules that have changed.
-- A transaction that needs both rows locks the rule first.

create table stampd.cron (
  name    text collate "C" primary key check (name ~ '^[A-Za-z][A-Za-z0-9_.-]{0,63}$'),
  opname  text collate "C" not null check (opname ~ '^[A-Za-z][A-Za-z0-9_.-]{0,31}$'),
  period  text collate "C" not null check (period ~ '^[0-9A-Za-z*,/-]+( [0-9A-Za-z*,/-]+){4}$' or period ~ ('^((Y((0[13578]|1[02])(0[1-9]|[12]\d|3[01])|(0[469]|11)(0[1-9]|[12]\d|30)'
            || '|02(0[1-9]|1\d|2[0-8]))|M(0[1-9]|[12]\d|3[01])|W[1-7]|D)([01]\d|2[0-3])|H)[0-5]\d$')),
  param   text not null default '{}',
  info    text collate "C" not null default '',
  module  text collate "C",
  dropped boolean not null default false,
  since   bigint not null,
  taskid  text collate "C",
  check (module is not null or not dropped)
);
comment on table stampd.cron is 'Rules of periodic tasks.  Do not write it by hand: use the functions cron_….';
comment on column stampd.cron.name is 'Name of the rule; that of the operation when a module declares it.';
comment on column stampd.cron.opname is 'The operation to run.';
comment on column stampd.cron.period is 'When: Ymmddhhmm, Mddhhmm, Wdhhmm, Dhhmm or Hmm, or five fields of crontab(5), in the time zone of the server.';
comment on column stampd.cron.param is 'Argument of the operation: a JSON object.';
comment on column stampd.cron.info is 'Words by which administrators find its task.';
comment on column stampd.cron.module is 'The module that declares it; null: an administrator.';
comment on column stampd.cron.dropped is 'A module declares it, an administrator does not want it.';
comment on column stampd.cron.since is 'Stamp of the declaration, or of its last change.';
comment on column stampd.cron.taskid is 'Its task, or the last one that it had; null: none yet.';
grant select, insert, update, delete on stampd.cron to stampd;

-- --- what workers do ---

create function stampd.cron_follow(names text[], periods text[], modules text[]) returns void
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
begin
  -- Nearly always everything is as declared, and nothing is locked.
  if exists (select from unnest(names, periods, modules) d(name, period, module) left join cron c on c.name = d.name
               where c.name is null or (c.module is not null and (c.period, c.module) is distinct from (d.period, d.module)))
     or exists (select from cron c where c.module is not null and not c.dropped and c.name <> all (names)) then
    lock table cron in share row exclusive mode;
    insert into cron as c (name, opname, period, module, since, taskid)
      select d.name, d.name, d.period, d.module, stamp_now(), (select t.taskid from taskqueue t where t.cron = d.name)
        from unnest(names, periods, modules) d(name, period, module)
      on conflict (name) do update
        set opname = excluded.opname, period = excluded.period, module = excluded.module, since = excluded.since
        where c.module is not null and (c.period, c.module) is distinct from (excluded.period, excluded.module);
    delete from cron c where c.module is not null and not c.dropped and c.name <> all (names);
  end if;
  delete from taskqueue t
    where t.starttime is null and t.taskid = any (array(
      select o.taskid from taskqueue o
        where o.cron is not null and not exists (select from cron c where c.name = o.cron and not c.dropped) order by o.cron));
end $$;
comment on function stampd.cron_follow(text[], text[], text[]) is
  'For workers: takes what the modules declare for the rules of modules, and back the tasks of rules that have gone.';

create function stampd.cron_scan(zone text, names text[], periods text[], modules text[])
  returns table (name text, opname text, period text, after bigint)
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
  set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  present constant bigint := stamp_now();
begin
  perform cron_follow(names, periods, modules);
  return query
  select c.name, c.opname, c.period,
      case when (c.taskid is null and t.taskid is null) or c.since > t.created then c.since
           when t.taskid is null then greatest(present, (select max(h.startat) from task_history h
                                                           where h.taskid = c.taskid and h.startat < 991231235959999))
           else present end
    from cron c left join taskqueue t on t.cron = c.name
    where not c.dropped and (t.taskid is null or (t.starttime is null
      and ((t.startat = 991231235959999 and t.exc is distinct from 'HELD')
           or (t.opname, t.param, t.info, t.plan) is distinct from (c.opname, c.param, c.info, c.period || ' ' || zone))))
    order by c.name;
end $$;
comment on function stampd.cron_scan(text, text[], text[], text[]) is
  'For workers: cron_follow; then the rules that have no task, whose task has been parked after failures, or waits as the rule was '
  'before it, or the time zone, was changed: each with the stamp behind which its next time lies.';

create function stampd.cron_plan(rule text, seen_period text, seen_opname text, next bigint, queue int, zone text) returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  held  cron;
  task  taskqueue;
  made  constant bigint := stamp_now();
  moves boolean; -- the start
  anew  boolean; -- what was done or has failed counts no more
begin
  -- Else an administrator who holds the table, and waits for the rule, and this would wait for each other.
  lock table cron in row exclusive mode;
  select * into held from cron c
    where c.name = rule and c.period = seen_period and c.opname = seen_opname and not c.dropped for update;
  if not found then
    return null;
  end if;
  select * into task from taskqueue t where t.cron = rule for update;
  if not found then
    insert into taskqueue (taskid, opname, param, info, startat, qn, created, cron, plan)
      values (substr(translate(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 1, 40), held.opname, held.param,
              held.info, next, queue, made, rule, held.period || ' ' || zone)
      returning taskid into task.taskid;
    update cron c set taskid = task.taskid where c.name = rule;
    return task.taskid;
  elsif task.starttime is not null then
    return null; -- the end of this run plans the next
  end if;
  anew := (task.opname, task.param) is distinct from (held.opname, held.param)
          or (task.startat = 991231235959999 and task.exc is distinct from 'HELD');
  if not anew and (task.info, task.plan) = (held.info, held.period || ' ' || zone) then
    return null; -- another was quicker
  end if;
  moves := case when task.startat = 991231235959999 then task.exc is distinct from 'HELD'
                when task.startat <= made then false
                else task.retry = 0 or anew end;
  update taskqueue t
    set opname = held.opname, param = held.param, info = held.info, qn = queue, created = made,
        plan = held.period || ' ' || zone,
        startat = case when moves then next else t.startat end,
        retry = case when anew then 0 else t.retry end,
        step = case when anew then 0 else t.step end,
        checkpoint = case when anew then null else t.checkpoint end
    where t.taskid = task.taskid;
  return task.taskid;
end $$;
comment on function stampd.cron_plan(text, text, text, bigint, int, text) is
  'For workers: makes the task of a rule, or plans it anew, for the time `next`.  One that is due stays due, one that an '
  'administrator holds stays held.  Returns the taskid; null: it runs, all is as wanted, or the rule is not as seen any more.';

create function stampd.cron_end(id text, started bigint, attempt int, stopped bigint, next bigint, plan text, result text)
  returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  rule cron;
  held taskqueue;
begin
  select c.* into rule from cron c
    where c.name = (select t.cron from taskqueue t where t.taskid = id) and not c.dropped for share;
  select * into held from taskqueue t where t.taskid = id and t.starttime = started and t.retry = attempt for update;
  if not found then
    return false;
  end if;
  insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, result, holder)
    values (id, held.opname, held.info, held.qn, held.retry, held.step + 1, held.startat, started, stopped, cron_end.result, held.holder);
  if rule.name is null then
    delete from taskqueue t where t.taskid = id;
  else
    update taskqueue t
      set opname = rule.opname, param = rule.param, info = rule.info, startat = next, starttime = null, holder = null, retry = 0,
          expires = null, progress = null, step = 0, checkpoint = null, exc = null, report = null, created = stopped,
          -- For another operation than the one that ran, a scan chooses the queue.
          plan = case when held.opname = rule.opname then cron_end.plan else '' end
      where t.taskid = id;
  end if;
  return true;
end $$;
comment on function stampd.cron_end(text, bigint, int, bigint, bigint, text, text) is
  'For workers, in the commit of a periodic task: ends the attempt, and lets the task wait for `next`; when its rule has gone, it '
  'goes too.  False: it is not this attempt''s any more.';

-- --- administrators' functions ---

create function stampd.cron_forget_task(rule text) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  delete from taskqueue t where t.cron = rule and t.starttime is null
$$;
comment on function stampd.cron_forget_task(text) is 'Takes back the task of a rule, unless it runs.';

create function stampd.cron_set(rule text, opname text, period text, param text default '{}', info text default '') returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held cron;
begin
  if json_typeof(cron_set.param::json) <> 'object' then
    raise exception 'param is a JSON object' using errcode = '22023';
  elsif cron_set.param <> '{}' and exists (select from data_key) then
    raise exception 'a periodic task of an encrypted namespace has no argument' using errcode = '22023';
  end if;
  lock table cron in share row exclusive mode;
  select * into held from cron c where c.name = rule;
  if found and held.module is null
     and (held.opname, held.period, held.param, held.info) = (cron_set.opname, cron_set.period, cron_set.param, cron_set.info) then
    return 'same';
  elsif not found and (select count(*) >= 1000 from cron) then
    raise exception 'a namespace has at most 1000 periodic tasks' using errcode = '54000';
  end if;
  insert into cron as c (name, opname, period, param, info, since, taskid)
    values (rule, cron_set.opname, cron_set.period, cron_set.param, cron_set.info, stamp_now(),
            (select t.taskid from taskqueue t where t.cron = rule))
    on conflict (name) do update
      set opname = excluded.opname, period = excluded.period, param = excluded.param, info = excluded.info, module = null,
          dropped = false, since = excluded.since, taskid = coalesce(c.taskid, excluded.taskid);
  return case when held.name is null then 'made' else 'changed' end;
end $$;
comment on function stampd.cron_set(text, text, text, text, text) is
  'Makes a rule or changes it; the next scan plans its task.  One that a module declares becomes the administrator''s.  Returns '
  'made, changed or same.';

create function stampd.cron_drop(rule text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  is_there boolean;
begin
  update cron c set dropped = true, since = stamp_now(), taskid = null where c.name = rule and c.module is not null and not c.dropped;
  is_there := found;
  if not is_there then
    delete from cron c where c.name = rule and c.module is null;
    is_there := found;
  end if;
  perform cron_forget_task(rule);
  return is_there;
end $$;
comment on function stampd.cron_drop(text) is
  'Ends a rule and takes back its task, unless that runs: then it is its last run.  A rule that a module declares stays ended '
  'until cron_restore.  False: there is none.';

create function stampd.cron_restore(rule text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  -- Its last run may not have ended: then that is its task again.
  update cron c set dropped = false, since = stamp_now(), taskid = (select t.taskid from taskqueue t where t.cron = rule)
    where c.name = rule and c.dropped;
  return found;
end $$;
comment on function stampd.cron_restore(text) is 'Takes cron_drop back, of a rule that a module declares.  False: it was not dropped.';

-- --- waking the queue managers ---

create function stampd.cron_notify() returns trigger
  language plpgsql set search_path = stampd, pg_temp as $$
begin
  if session_user <> 'stampd' then
    perform task_notify(0);
  end if;
  return null;
end $$;
create trigger cron_notify after insert or update or delete on stampd.cron for each statement execute function stampd.cron_notify();

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.cron_follow(text[], text[], text[]), stampd.cron_scan(text, text[], text[], text[]),
  stampd.cron_plan(text, text, text, bigint, int, text), stampd.cron_end(text, bigint, int, bigint, bigint, text, text),
  stampd.cron_notify() to stampd;
