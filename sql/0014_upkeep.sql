-- What is done to all documents of a namespace: purging what is too old, starting over after a restore, and importing an archive.

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
    when 'references' then purge_references(before, batch)
  end;
end $$;
comment on function stampd.keep(text, int, bigint) is
  'Deletes up to `batch` of what is too old: documents that have ended, departures from collections, zombies, subscriptions that have '
  'ended, answers under an Idempotency-Key, attempts at tasks, unique values of declarations that are no more, references to files that have ended.  Returns how many.';

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
  insert into subscription_matched (session, key, id, kind, version)
    select t.session, t.key, t.id, t.kind, min(t.version) from subscription_matched t where t.taken <> 0 group by t.session, t.key, t.id, t.kind
    on conflict (session, taken, key, id, kind) do update set version = least(subscription_matched.version, excluded.version);
  delete from subscription_matched t where t.taken <> 0;
  update namespace set floor = present, epoch = (random() * 9007199254740991)::bigint,
    restored = coalesce(current_setting('stampd.restored', true), '') where one;
  perform servers_forget(); -- those that were there at the time of the backup
  perform pg_notify('stampd', 'all');
  return present;
end $$;
comment on function stampd.after_restore() is
  'After a restore: all documents become new incarnations, so that no client with a copy, whatever it has got since the backup, '
  'takes it for a good one; the floor rises; running servers drop their proofs.  Returns the version of it.  The clock must '
  'be right.  Run vacuum afterwards: each row has been written anew.';

-- --- importing an archive (doc/reference/archives.md) ---

create table stampd.import_progress (
  one      boolean primary key default true check (one),
  identity text not null,
  is_merge boolean not null,
  state    int not null,
  members  int not null default 0,
  sum      text not null default ''
);
comment on table stampd.import_progress is
  'At most one row: an import that has begun and not ended.  Each transaction that imports documents moves it.';
comment on column stampd.import_progress.identity is 'Digest of the archive, and of how it is transformed.';
comment on column stampd.import_progress.state is 'The state that the namespace had, and gets again at the end.';
comment on column stampd.import_progress.members is 'How many members of the archive are done.';
comment on column stampd.import_progress.sum is 'What the documents imported so far amount to: JSON.';

create table stampd.import_source (
  source    text collate "C" primary key,
  position  text not null,
  documents bigint not null default 0,
  moved     timestamptz not null default now()
);
comment on table stampd.import_source is
  'Where documents are brought in from, again and again, and how far: each transaction that stores some moves its row.';
comment on column stampd.import_source.source is 'Address of the database, and a digest of how its documents are mapped.';
comment on column stampd.import_source.position is 'JSON (src/control/foreign/cmd_import_couchdb.c).';
comment on column stampd.import_source.documents is 'How many were read so far.';

create function stampd.import_document(class text, id text, iclasses text[], keys text[], contents text[], raws boolean[], attaches boolean default false)
  returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held    doc;
  changed bigint;
  rules   json;
begin
  if 'P' = any (iclasses) and not attaches then
    raise exception 'the class P of items is reserved for attachments' using errcode = '22023';
  end if;
  for nth in 1 .. coalesce(cardinality(iclasses), 0) loop
    if not raws[nth] and iclasses[nth] <> 'P' then
      perform contents[nth]::jsonb; -- refuses what is no JSON
      rules := mutate_rules(import_document.class, iclasses[nth]);
      if rules is not null then
        contents[nth] := mutate_content(rules, contents[nth]);
      end if;
    end if;
  end loop;
  held := lock_document(import_document.class, import_document.id);
  if coalesce(held.ctime, 0) <> 0 and not exists (
      select from unnest(iclasses, keys, contents, raws) n(iclass, key, content, raw)
        full join (select * from item i where i.class = import_document.class and i.id = import_document.id and i.content is not null
            and (attaches or i.iclass <> 'P')) o
          on o.iclass = n.iclass and o.key = n.key
        where (n.content, n.raw) is distinct from (o.content, o.raw)) then
    return 0;
  end if;
  changed := version_above(coalesce(held.version, (select floor from namespace where one)));
  insert into doc as d (class, id, version, ctime, dtime, v1, v2)
    values (import_document.class, import_document.id, changed, changed, changed, 0, 0)
    on conflict on constraint doc_pkey do update set version = changed,
      ctime = case when d.ctime = 0 then changed else d.ctime end, dtime = case when d.ctime = 0 then changed else d.dtime end;
  update item i set version = changed, vop = 0, content = null, raw = false
    where i.class = import_document.class and i.id = import_document.id and i.content is not null
      and (attaches or i.iclass <> 'P')
      and not exists (select from unnest(iclasses, keys) n(iclass, key) where n.iclass = i.iclass and n.key = i.key);
  insert into item as i (class, id, iclass, key, version, vop, content, raw)
    select import_document.class, import_document.id, n.iclass, n.key, changed, changed, n.content, n.raw
      from unnest(iclasses, keys, contents, raws) n(iclass, key, content, raw)
    on conflict on constraint item_pkey do update
      set version = excluded.version, vop = excluded.vop, content = excluded.content, raw = excluded.raw
      where (i.content, i.raw) is distinct from (excluded.content, excluded.raw);
  update doc d set v1 = (
      select coalesce(sum(octet_length(i.key) + octet_length(i.content)), 0) from item i
        where i.class = import_document.class and i.id = import_document.id and i.content is not null),
      v2 = case when not attaches then d.v2 else (
      select coalesce(sum((i.content::json ->> 'size')::bigint), 0) from item i
        where i.class = import_document.class and i.id = import_document.id and i.iclass = 'P' and i.content is not null) end
    where d.class = import_document.class and d.id = import_document.id;
  perform export_items(import_document.class, import_document.id, changed);
  return changed;
end $$;
comment on function stampd.import_document(text, text, text[], text[], text[], boolean[], boolean) is
  'Makes the items of a document exactly these, its attachments with `attaches` only; creates it when there is none.  Rules of the class for older releases are applied.  '
  'Returns its version; 0: it was so already.';

create function stampd.restore_document(of_class text, of_id text, of_version bigint, of_ctime bigint, of_dtime bigint, of_v1 bigint, of_v2 bigint,
    iclasses text[], keys text[], versions bigint[], stamps bigint[], contents text[], raws boolean[]) returns void
  language plpgsql volatile set search_path = stampd, pg_temp set stampd.worker = 'on' set stampd.rewrites = 'on' as $$
begin
  perform check_isolation();
  insert into doc as d (class, id, version, ctime, dtime, v1, v2) values (of_class, of_id, of_version, of_ctime, of_dtime, of_v1, of_v2)
    on conflict on constraint doc_pkey do update
      set version = excluded.version, ctime = excluded.ctime, dtime = excluded.dtime, v1 = excluded.v1, v2 = excluded.v2;
  perform side_wipe(of_class, of_id);
  delete from item i where i.class = of_class and i.id = of_id;
  insert into item (class, id, iclass, key, version, vop, content, raw)
    select of_class, of_id, n.iclass, n.key, n.version, n.vop, n.content, n.raw
      from unnest(iclasses, keys, versions, stamps, contents, raws) n(iclass, key, version, vop, content, raw);
  perform export_items(of_class, of_id, null);
end $$;
comment on function stampd.restore_document(text, text, bigint, bigint, bigint, bigint, bigint, text[], text[], bigint[], bigint[], text[], boolean[]) is
  'Makes the rows of a document exactly these, versions included, and side tables and collections what follows from them.  Nobody else '
  'may write meanwhile, and no client may have a copy: `stampctl ns move` calls it in a namespace that is not open yet.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.keep(text, int, bigint), stampd.keep_items(text, int),
  stampd.keep_store(text, text[], text[], text[], text[]), stampd.keep_end(text), stampd.keep_expiry(int) to stampd;
