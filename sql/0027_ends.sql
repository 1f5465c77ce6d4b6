-- The end of a document by maxLife is told when it comes: the keeper deletes it then, and that commit is told like any other.
-- Changes that no worker made wake the queue managers too when sessions are to be woken.

create function stampd.keep_ends(batch int, out ended bigint, out is_declared boolean, out has_more boolean, out minute_ms bigint)
  language plpgsql volatile security definer set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  present bigint;
  kind    record;
  ids     text[];
  one     text;
begin
  ended := 0;
  is_declared := false;
  has_more := false;
  if exists (select from ending_property p) then
    -- Somebody else's batch, on another host, is waited for: then there is less to do.
    perform pg_advisory_xact_lock(hashtextextended('stampd ends', 0));
    is_declared := true;
    present := present_minute();
    for kind in select p.class from ending_property p order by p.class loop
      -- Those that others have locked at this moment wait for the next call.
      select array_agg(o.id order by o.id) into ids from (
        select d.id from (select e.id from ending e where e.class = kind.class and e.until <= present order by e.until, e.id offset 0) e
          cross join lateral (select t.id from doc t where t.class = kind.class and t.id = e.id for no key update skip locked) d
          limit batch - ended) o;
      foreach one in array coalesce(ids, '{}') loop
        perform lock_document(kind.class, one);
        ended := ended + 1;
      end loop;
      has_more := has_more or exists (
        select from ending e where e.class = kind.class and e.until <= present
          and exists (select from doc d where d.class = e.class and d.id = e.id));
      exit when ended >= batch;
    end loop;
  end if;
  minute_ms := ceil(60000 - extract(epoch from clock_timestamp()) * 1000 % 60000);
end $$;
comment on function stampd.keep_ends(int) is
  'Deletes up to `batch` documents that have ended by themselves, but none that is locked: how many; does any class have ends; are there '
  'more; milliseconds to the next minute.';

create or replace function stampd.subs_follow() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
declare
  keys     text[];
  versions bigint[];
  queue    int;
begin
  if current_setting('stampd.touched', true) = 'on' or not (select s.wakes from schema s where s.one) then
    return null;
  end if;
  perform subs_lock(false);
  select o.qn into queue from task_operation o where o.opname = 'push';
  select array_agg(k.key), array_agg(k.version) into keys, versions from subs_keys(array[new.class], array[new.id]) k;
  perform subs_wake(keys, versions, null, present_minute(), stamp_now(), coalesce(queue, 3));
  if found then
    perform task_tell(0);
  end if;
  return null;
end $$;

revoke execute on function stampd.keep_ends(int) from public;
grant execute on function stampd.keep_ends(int) to stampd;
