-- What is done to all documents of a namespace: purging what is too old, and starting over after a restore.

create function stampd.purge_departures(older_than_stamp bigint, batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  -- What has left a collection goes first: what is left of the callers' sight then has nothing older to be compared with.
  purged constant bigint := purge_members(older_than_stamp, batch);
begin
  return purged + case when purged < batch then purge_sights(older_than_stamp, (batch - purged)::int) else 0 end;
end $$;
comment on function stampd.purge_departures(bigint, int) is
  'purge_members, then purge_sights: up to `batch` rows together.  Returns how many; call again until it returns 0.';

-- --- the keeper: a process of each host that calls these repeatedly for each namespace, with the rights of the owner ---

create function stampd.keep(what text, batch int, age_s bigint) returns bigint
  language plpgsql volatile security definer set search_path = stampd, pg_temp as $$
declare
  before constant bigint := stamp_of(now() - make_interval(secs => age_s));
begin
  -- Another batch is under way, on another host or by `stampctl ns purge`: the next round is soon enough.
  if not pg_try_advisory_xact_lock(hashtextextended('stampd keeper', 0)) then
    return 0;
  end if;
  return case what
    when 'ended' then expire_documents(batch)
    when 'departures' then purge_departures(before, batch)
    when 'zombies' then purge_zombies(before, batch)
    when 'subscriptions' then purge_subscriptions(batch)
    when 'answers' then purge_idempotency(before, batch)
    when 'attempts' then task_purge_history(before, batch)
    when 'values' then purge_values(batch)
  end;
end $$;
comment on function stampd.keep(text, int, bigint) is
  'Deletes up to `batch` of what is too old: documents that have ended, departures from collections, zombies, subscriptions that have '
  'ended, answers under an Idempotency-Key, attempts at tasks, unique values of declarations that are no more.  Returns how many.';

create function stampd.keep_items(of_class text, batch int) returns table (id text, iclass text, key text, content text, counted bigint)
  language sql volatile security definer set search_path = stampd, pg_temp as $$ select * from mutate_items(of_class, batch) $$;
create function stampd.keep_store(of_class text, ids text[], iclasses text[], keys text[], contents text[]) returns void
  language sql volatile security definer set search_path = stampd, pg_temp as $$ select mutate_store(of_class, ids, iclasses, keys, contents) $$;
create function stampd.keep_end(of_class text) returns void
  language sql volatile security definer set search_path = stampd, pg_temp as $$ select mutate_end(of_class) $$;

create function stampd.keep_expiry(batch int, out ended bigint, out is_declared boolean, out has_more boolean, out minute_ms bigint)
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
  if exists (select from expiry_property p) then
    -- Waits for another host's batch: then there is less to do.
    perform pg_advisory_xact_lock(hashtextextended('stampd ends', 0));
    is_declared := true;
    present := present_minute();
    for kind in select p.class from expiry_property p order by p.class loop
      -- Those that others have locked at this moment wait for the next call.
      select array_agg(o.id order by o.id) into ids from (
        select d.id from (select e.id from expiry e where e.class = kind.class and e.until <= present order by e.until, e.id offset 0) e
          cross join lateral (select t.id from doc t where t.class = kind.class and t.id = e.id for no key update skip locked) d
          limit batch - ended) o;
      foreach one in array coalesce(ids, '{}') loop
        perform lock_document(kind.class, one);
        ended := ended + 1;
      end loop;
      has_more := has_more or exists (
        select from expiry e where e.class = kind.class and e.until <= present
          and exists (select from doc d where d.class = e.class and d.id = e.id));
      exit when ended >= batch;
    end loop;
  end if;
  minute_ms := minute_left_ms();
end $$;
comment on function stampd.keep_expiry(int) is
  'Deletes up to `batch` documents that have ended by themselves, but none that is locked: how many; does any class have ends; are there '
  'more; milliseconds to the next minute.';

-- --- after a restore ---

create function stampd.after_restore() returns bigint language plpgsql volatile set search_path = stampd, pg_temp
  set stampd.worker = 'on' as $$
declare
  present bigint;
begin
  perform check_isolation();
  lock table doc in exclusive mode; -- whoever commits meanwhile would be overlooked
  present := version_above(greatest((select max(d.version) from doc d), (select s.floor from namespace s where s.one)));
  delete from item i where i.content is null;
  update doc d set version = present,
    ctime = case d.ctime when 0 then 0 else present end, dtime = case d.ctime when 0 then 0 else present end;
  delete from member m where m.has_left;
  update member m set version = present, xid = pg_current_xact_id();
  update collection c set floor = '0';
  truncate sight;
  update sight_rules set mark = 0, since = null, floor = '0' where one; -- numbers of transactions are those of another cluster
  -- Other namespaces may have taken values meanwhile: stampctl schema apply takes them again, or reports which it cannot have.
  delete from unique_value v using unique_property u where u.number = v.property and u.is_global;
  insert into schema_fill (class, iclass, after, done) select distinct u.class, '', '', 0 from unique_property u where u.is_global
    on conflict (class, iclass) do update set after = '', done = 0;
  update unique_property u set is_ready = false where u.is_global;
  -- Numbers of transactions are those of another cluster: what was taken and not sent is taken once more.
  insert into subscription_matched (session, key, id, version)
    select t.session, t.key, t.id, min(t.version) from subscription_matched t where t.taken <> 0 group by t.session, t.key, t.id
    on conflict (session, taken, key, id) do update set version = least(subscription_matched.version, excluded.version);
  delete from subscription_matched t where t.taken <> 0;
  update namespace set floor = present, epoch = (random() * 9007199254740991)::bigint where one;
  perform pg_notify('stampd', 'all');
  return present;
end $$;
comment on function stampd.after_restore() is
  'After a restore: all documents become new incarnations, so that no client with a copy, whatever it has got since the backup, '
  'takes it for a good one; the floor rises; running servers drop their proofs.  Returns the version of it.  The clock must '
  'be right.  Run vacuum afterwards: each row has been written anew.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.keep(text, int, bigint), stampd.keep_items(text, int),
  stampd.keep_store(text, text[], text[], text[], text[]), stampd.keep_end(text), stampd.keep_expiry(int) to stampd;
