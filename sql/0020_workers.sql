-- External workers: programs that take tasks of the queues 16 to 31, and end them by requests.  doc/reference/workers.md
--
-- A claim is a row of taskqueue like that of a server's process, and ends by itself at the stamp `expires`: then whoever scans or takes puts the
-- task back.  The end of an attempt has the guard of all attempts: taskid, starttime, retry.

create function stampd.task_take_heads(of_qn int, before bigint, paused text[]) returns setof stampd.taskqueue
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  first_due constant text[] := array(
    select t.domain from taskqueue t
      where t.starttime is null and t.domain is not null and t.startat < 991231235959999
        and greatest(t.qn, 15::smallint) = of_qn and t.startat <= before
      order by t.startat limit 200);
  is_whole constant boolean := cardinality(first_due) < 200;
  domains  text[] := array(select distinct f.domain from unnest(first_due) f(domain));
  -- Of a row drawn at random: many tasks of busy domains must not hide those of the others.
  name     text := case when not is_whole then coalesce(
    (select t.domain from taskqueue t where t.taskid >= substr(md5(random()::text), 1, 8) order by t.taskid limit 1), '') end;
begin
  for step in 1 .. case when is_whole then 0 else 50 end loop
    name := (select t.domain from taskqueue t
      where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and t.qn >= 16
        and t.qn = of_qn and t.domain > name and t.startat <= before
      order by t.domain limit 1);
    exit when name is null;
    if name <> all (domains) then
      domains := domains || name;
    end if;
  end loop;
  foreach name in array domains loop
    continue when exists (select from taskqueue t where t.starttime is not null and t.domain = name);
    return query select t.* from taskqueue t where t.taskid = task_next(name, before, paused) and t.qn = of_qn;
  end loop;
end $$;
comment on function stampd.task_take_heads(int, bigint, text[]) is
  'Of domains with due tasks in the queue: the tasks whose turn it is; not of all domains when there are many.';

create function stampd.task_take_domain(id text, of_domain text, before bigint, claim bigint, worker text, claimed_until bigint,
  ended text) returns setof stampd.taskqueue
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  -- Two that take several would wait for each other's domains.  Nor is a task waited for that another transaction changes.
  if not pg_try_advisory_xact_lock(hashtextextended('stampd domain ' || of_domain, 0)) then
    return;
  end if;
  perform from taskqueue t where t.taskid = id and t.starttime is null for update skip locked;
  if not found then
    return;
  end if;
  return query
    update taskqueue t set starttime = claim, holder = worker, expires = claimed_until, progress = null, exc = null, report = null, follows = ended
      where t.taskid = id and t.starttime is null and t.startat <= before and task_next(of_domain, before) = id
      returning t.*;
exception when unique_violation then null; -- another of the domain has just begun
end $$;
comment on function stampd.task_take_domain(text, text, bigint, bigint, text, bigint, text) is
  'Claims a task of a domain, if it is still its turn.';

create function stampd.task_take_by_turns(of_qn int, of_domain text, most int, before bigint, claim bigint, worker text, claimed_until bigint,
  ended text) returns setof stampd.taskqueue
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  heads   taskqueue[];
  head    taskqueue;
  next    int := 1;
  level   smallint := -1;
  given   int := 0;
  added   bigint;
  picked  text[];
  paused  text[] := task_stopped();
begin
  if 'queue ' || of_qn = any (paused) then
    return; -- a limit of the queue is reached
  elsif of_domain is not null then
    return query select c.* from taskqueue t
      cross join lateral task_take_domain(t.taskid, of_domain, before, claim, worker, claimed_until, ended) c
      where t.taskid = task_next(of_domain, before) and t.qn = of_qn;
    return;
  end if;
  heads := array(select h from task_take_heads(of_qn, before, paused) h order by h.priority, h.startat, h.number);
  loop
    level := (select t.priority from taskqueue t
      where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.qn = of_qn and t.priority > level
      order by t.priority limit 1);
    -- Those of domains that are as urgent go with them: a domain waits longest.
    while next <= coalesce(cardinality(heads), 0) and given < most loop
      head := heads[next];
      exit when head.priority > level;
      next := next + 1;
      return query select c.* from task_take_domain(head.taskid, head.domain, before, claim, worker, claimed_until, ended) c;
      get diagnostics added = row_count;
      given := given + added;
    end loop;
    exit when level is null or given >= most;
    -- What a limit refuses in the middle must not hide what is behind: again, without what is full now.
    loop
      picked := array(
        select t.taskid from taskqueue t
          where t.starttime is null and t.domain is null and t.startat < 991231235959999
            and t.qn = of_qn and t.priority = level and t.startat <= before and not task_is_paused(paused, t.qn, t.opname, t.key)
          order by t.startat, t.number limit most - given for update skip locked);
      return query
        update taskqueue t
          set starttime = claim, holder = worker, expires = claimed_until, progress = null, exc = null, report = null, follows = ended
          from unnest(picked) f(taskid) where t.taskid = f.taskid
          returning t.*;
      get diagnostics added = row_count;
      given := given + added;
      exit when added = 0 or added = cardinality(picked);
      paused := task_stopped();
    end loop;
    exit when given >= most;
  end loop;
end $$;
comment on function stampd.task_take_by_turns(int, text, int, bigint, bigint, text, bigint, text) is
  'task_take where domains or limits decide what is next.';

create function stampd.task_take(of_qn int, of_domain text, most int, before bigint, claim bigint, worker text, claimed_until bigint,
  ended text default null) returns setof stampd.taskqueue
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  by_turns boolean;
  paused   text[];
  level    smallint;
  given    int := 0;
  added    bigint;
  setting  text;
begin
  select of_domain is not null or exists (select from task_limit) or exists (
           select from taskqueue t
             where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and greatest(t.qn, 15::smallint) = of_qn
               and t.startat <= before),
         array(select p.what from task_paused p),
         (select t.priority from taskqueue t
            where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.qn = of_qn
            order by t.priority limit 1)
    into by_turns, paused, level;
  if paused <> '{}' and 'queue ' || of_qn = any (paused) then
    return;
  elsif by_turns then
    return query select t.* from task_take_by_turns(of_qn, of_domain, most, before, claim, worker, claimed_until, ended) t;
    return;
  end if;
  setting := set_config('stampd.unlimited', 'on', true); -- for the trigger task_begin
  while level is not null loop
    return query
      with free as materialized (
        select t.ctid as place from taskqueue t
          where t.starttime is null and t.domain is null and t.startat < 991231235959999
            and t.qn = of_qn and t.priority = level and t.startat <= before and not task_is_paused(paused, t.qn, t.opname, t.key)
          order by t.startat, t.number limit most - given for update skip locked)
      update taskqueue t
        set starttime = claim, holder = worker, expires = claimed_until, progress = null, exc = null, report = null, follows = ended
        from free where t.ctid = free.place
        returning t.*;
    get diagnostics added = row_count;
    given := given + added;
    exit when given >= most;
    level := (select t.priority from taskqueue t
      where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.qn = of_qn and t.priority > level
      order by t.priority limit 1);
  end loop;
end $$;
comment on function stampd.task_take(int, text, int, bigint, bigint, text, bigint, text) is
  'For workers: claims tasks of a queue, of one domain or of any, that may start at `before` and are not paused, until `claimed_until`.';

create function stampd.task_take_beside(of_qn int, of_domain text, most int, before bigint, claim bigint, worker text, claimed_until bigint,
  ended text) returns setof stampd.taskqueue
  language plpgsql volatile as $$
begin
  return query select t.* from stampd.task_take(of_qn, of_domain, most, before, claim, worker, claimed_until, ended) t;
exception when others then null; -- the end of a task does not depend on it
end $$;
comment on function stampd.task_take_beside(int, text, int, bigint, bigint, text, bigint, text) is
  'For workers: the same in the commit that has ended the attempt `ended`; nothing if that is not possible.';

create function stampd.task_upcoming(of_qn int, present bigint, of_domain text default null) returns bigint
  language plpgsql stable set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
begin
  if of_domain is not null then
    return least((select t.startat from taskqueue t where t.taskid = task_later(of_domain, present, 991231235959998)),
                 (select t.expires from taskqueue t where t.starttime is not null and t.domain = of_domain and t.expires > present));
  end if;
  -- In this language its plan is kept for the session; to make it takes longer than to run it.
  return (
    with recursive level(priority) as (
      (select t.priority from taskqueue t
         where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.qn = of_qn
         order by t.priority limit 1)
      union all
      select n.priority from level p cross join lateral (
        select t.priority from taskqueue t
          where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.qn = of_qn and t.priority > p.priority
          order by t.priority limit 1) n
    )
    select least(
      (select min(w.startat) from level p cross join lateral (
         select t.startat from taskqueue t
           where t.starttime is null and t.domain is null and t.startat < 991231235959999 and t.qn = of_qn and t.priority = p.priority
             and t.startat > present
           order by t.startat limit 1) w),
      (select t.startat from taskqueue t
         where t.starttime is null and t.domain is not null and t.startat < 991231235959999 and greatest(t.qn, 15::smallint) = of_qn
           and t.startat > present
         order by t.startat limit 1),
      (select t.expires from taskqueue t where t.starttime is not null and t.qn = of_qn and t.expires > present order by t.expires limit 1)));
end $$;
comment on function stampd.task_upcoming(int, bigint, text) is
  'The next stamp at which the queue, or the domain, may have more to take: a start, or the end of a claim; null: none is known.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.task_take_heads(int, bigint, text[]),
  stampd.task_take_domain(text, text, bigint, bigint, text, bigint, text),
  stampd.task_take_by_turns(int, text, int, bigint, bigint, text, bigint, text),
  stampd.task_take(int, text, int, bigint, bigint, text, bigint, text),
  stampd.task_take_beside(int, text, int, bigint, bigint, text, bigint, text), stampd.task_upcoming(int, bigint, text) to stampd;
