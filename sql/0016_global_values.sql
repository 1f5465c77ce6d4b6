-- Values that are unique in all namespaces.  collections.md tells how two databases agree without a common transaction.
--
-- Which documents have which values is known by the database of each namespace alone, in unique_value.  The database of z
-- knows which namespace may have a value: a commit claims there what it takes, before it ends.  A claim whose commit never was
-- is found out by asking the database that it names.

-- --- in the database of z ---

create table stampd.global_value (
  class    text collate "C" not null,
  name     text collate "C" not null,
  value    text collate "C" not null,
  database text collate "C" not null,
  claim    bigint not null,
  primary key (class, name, value)
);
create index global_value_database on stampd.global_value (database);
comment on table stampd.global_value is
  'In the database of z: values of properties that are unique in all namespaces, and which may have them.';
comment on column stampd.global_value.database is 'Documents of no other database have the value; whether one of this has, only it knows.';
comment on column stampd.global_value.claim is 'Number of the last commit that was about to take or give up the value.';
create sequence stampd.global_claim_number;
grant select, insert, update, delete on stampd.global_value to stampd;
grant usage on sequence stampd.global_claim_number to stampd;

create function stampd.global_claim(classes text[], names text[], vals text[], of_database text)
  returns table (number bigint, place int, database text, claim bigint)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  present constant bigint := nextval('global_claim_number');
begin
  if of_database <> current_database() then -- the commit that follows makes this durable
    perform set_config('synchronous_commit', 'off', true);
  end if;
  insert into global_value as g (class, name, value, database, claim)
    select u.class, u.name, u.value, of_database, present from unnest(classes, names, vals) u(class, name, value) order by 1, 2, 3
    on conflict (class, name, value) do update set claim = excluded.claim where g.database = excluded.database;
  -- Who came later has waited for the first; this statement sees what that one left.
  return query select present, null::int, null::text, null::bigint
    union all select present, u.place::int, g.database, g.claim
      from unnest(classes, names, vals) with ordinality u(class, name, value, place) join global_value g using (class, name, value)
      where g.claim <> present;
end $$;
comment on function stampd.global_claim(text[], text[], text[], text) is
  'Claims values for a database.  A row with the number of the claim, and one for each that another database has, with its place.  '
  'Durable with the commit that follows it on the same server.';

create function stampd.global_drop(classes text[], names text[], vals text[], of_database text, of_claim bigint) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  delete from global_value g using unnest(classes, names, vals) u(class, name, value)
    where g.class = u.class and g.name = u.name and g.value = u.value and g.database = of_database and g.claim = of_claim
$$;
comment on function stampd.global_drop(text[], text[], text[], text, bigint) is
  'Values that a database does not have any more, unless a later commit has claimed them.';

create function stampd.forget_database(of_database text) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  forgotten bigint;
begin
  delete from global_value g where g.database = of_database;
  get diagnostics forgotten = row_count;
  return forgotten;
end $$;
comment on function stampd.forget_database(text) is
  'In the database of z: frees all values of a database that is no more.  Returns how many.';

-- --- in the database of a namespace ---

alter table stampd.unique_property add column is_global boolean not null default false;
comment on column stampd.unique_property.is_global is 'Unique in all namespaces that declare it so.';

create function stampd.global_key(of_class text, of_name text, of_value text) returns bigint language sql immutable as $$
  select hashtextextended('global ' || of_class || '.' || of_name || ' ' || of_value, 1)
$$;
comment on function stampd.global_key(text, text, text) is 'Of the lock that a commit holds which takes or gives up the value.';

create function stampd.global_note(held jsonb, let_go jsonb) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  noted text := current_setting('stampd.claims', true);
begin
  if coalesce(noted, '') <> '' then
    perform set_config('stampd.claims', (noted::jsonb || coalesce(held, '[]') || coalesce(let_go, '[]'))::text, true);
  elsif held <> '[]' then
    perform fail('ST006', 'a value that is unique in all namespaces is given by requests to the server only');
  end if;
end $$;
comment on function stampd.global_note(jsonb, jsonb) is
  'Notes, for who claims them in z, values that this transaction takes and gives up.  Who does not claim may only give up: then z '
  'finds out when somebody wants the value.  ST006: it wants to take one.';

create function stampd.global_changes() returns table (class text, name text, value text, is_taken boolean)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(o.key) from (
    select distinct global_key(u.class, u.name, n.pair ->> 1) as key
      from jsonb_array_elements(current_setting('stampd.claims')::jsonb) n(pair) join unique_property u on u.number = (n.pair ->> 0)::bigint
      order by 1) o;
  return query
    select distinct u.class, u.name, n.pair ->> 1,
           exists (select from unique_value v where v.property = u.number and v.value = n.pair ->> 1)
      from jsonb_array_elements(current_setting('stampd.claims')::jsonb) n(pair) join unique_property u on u.number = (n.pair ->> 0)::bigint
      order by 1, 2, 3;
end $$;
comment on function stampd.global_changes() is
  'What this transaction has noted; whoever asks about these values waits from here on until it has ended.';

create function stampd.global_look(of_class text, of_name text, of_value text, minute bigint) returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  if not pg_try_advisory_xact_lock_shared(global_key(of_class, of_name, of_value)) then
    return 'busy';
  end if;
  -- A document that has ended has no value; nobody may prolong its life at this moment.
  perform from unique_property u join unique_value v on v.property = u.number and v.value = of_value
    join ending e on e.class = of_class and e.id = v.id and e.until <= minute
    where u.class = of_class and u.name = of_name for update of e skip locked;
  if found then
    delete from unique_value v using unique_property u
      where u.class = of_class and u.name = of_name and v.property = u.number and v.value = of_value;
    return 'free';
  end if;
  -- Before all documents have been looked at, one that has not may have it.
  perform from unique_property u where u.class = of_class and u.name = of_name and u.is_global
    and (not u.is_ready or exists (select from unique_value v where v.property = u.number and v.value = of_value));
  return case when found then 'held' else 'free' end;
end $$;
comment on function stampd.global_look(text, text, text, bigint) is
  'Has a document of this namespace the value: held, free, or busy: a transaction that may change it has not ended.';

create or replace function stampd.follow_schema() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  create temp table declared on commit drop as
    select c.key as class, kind.key as kind, p.key as name, coalesce((p.value ->> 'list')::boolean, false) as is_list,
           coalesce((p.value ->> 'global')::boolean, false) as is_global,
           array(select json_array_elements_text(p.value -> 'key')) as keys
      from json_each(new.content::json -> 'classes') c
      cross join lateral (values ('collections'), ('unique')) kind(key)
      cross join lateral json_each(coalesce(c.value -> kind.key, '{}')) p;
  delete from collection o where not exists (select from declared d where d.kind = 'collections' and d.class = o.class
    and d.name = o.name and d.keys = o.keys and d.is_list = o.is_list);
  insert into collection (class, name, keys, is_list)
    select d.class, d.name, d.keys, d.is_list from declared d where d.kind = 'collections' order by d.class, d.name
    on conflict (class, name) do nothing;
  delete from unique_property o where not exists (select from declared d where d.kind = 'unique' and d.class = o.class
    and d.name = o.name and d.keys = o.keys and d.is_global = o.is_global);
  insert into unique_property (class, name, keys, is_global)
    select d.class, d.name, d.keys, d.is_global from declared d where d.kind = 'unique' order by d.class, d.name
    on conflict (class, name) do nothing;
  -- What is new must be filled from the start.
  insert into schema_fill (class, iclass, after, done)
    select c.class, '', '', 0 from collection c where not c.is_ready
    union select u.class, '', '', 0 from unique_property u where not u.is_ready
    on conflict (class, iclass) do update set after = '', done = 0;
  drop table declared;
  return null;
end $$;

create or replace function stampd.member_write(of_class text, ids text[], minute bigint default stampd.present_minute()) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  twice     json;
  ends_here boolean := ending_write(of_class, ids);
  held      jsonb; -- values that are unique in all namespaces, and are taken here by this
  let_go    jsonb; -- or given up
begin
  with present as materialized (select * from member_values(of_class, ids)
  ), stays as (
    insert into member (collection, id, value, version, xid, has_left, until)
      select p.collection, p.id, p.value, p.version, pg_current_xact_id(), false, e.until
        from present p left join ending e on ends_here and e.class = of_class and e.id = p.id
      on conflict (collection, id, value) do update
        set version = excluded.version, xid = excluded.xid, has_left = false, until = excluded.until
  )
  update member m set has_left = true, version = d.version, xid = pg_current_xact_id(), until = null
    from collection c, doc d
    where c.class = of_class and m.collection = c.number and m.id = any (ids) and not m.has_left
      and d.class = of_class and d.id = m.id
      and not exists (select from present p where p.collection = m.collection and p.id = m.id and p.value = m.value);

  if not exists (select from unique_property u where u.class = of_class) then
    return;
  end if;
  with gone as (
    delete from unique_value v using unique_property u
      where u.class = of_class and v.property = u.number and v.id = any (ids)
        and v.value is distinct from (select property_joined(of_class, d.id, u.keys) from doc d
                                        where d.class = of_class and d.id = v.id and is_alive(d, minute))
      returning u.number, v.value, u.is_global
  ) select jsonb_agg(jsonb_build_array(g.number, g.value)) into let_go from gone g where g.is_global;
  loop
    with fresh as (
      insert into unique_value (property, value, id)
        select t.number, t.value, t.id from (
          select u.number, d.id, property_joined(of_class, d.id, u.keys) as value
            from unique_property u join doc d on d.class = of_class and d.id = any (ids) and is_alive(d, minute)
            where u.class = of_class
        ) t where t.value is not null order by t.number, t.value, t.id
        on conflict (property, value) do nothing returning property, value
    ) select coalesce(held, '[]') || coalesce(jsonb_agg(jsonb_build_array(f.property, f.value)), '[]') into held
        from fresh f join unique_property u on u.number = f.property and u.is_global;
    -- Who came later has waited for the first; this statement sees what that one left.
    select json_build_array(u.name, t.id, v.id) into twice from unique_property u
      join doc d on d.class = of_class and d.id = any (ids) and is_alive(d, minute)
      cross join lateral (select d.id, property_joined(of_class, d.id, u.keys) as value) t
      join unique_value v on v.property = u.number and v.value = t.value and v.id <> t.id
      where u.class = of_class limit 1;
    exit when not found;
    if not ends_here then
      perform fail('ST005', twice::text);
    end if;
    perform unique_release(of_class, ids, minute); -- and once more
    ends_here := false;
  end loop;
  if held <> '[]' or let_go is not null then
    perform global_note(held, let_go);
  end if;
end $$;

create or replace function stampd.after_restore() returns bigint language plpgsql volatile set search_path = stampd, pg_temp
  set stampd.worker = 'on' as $$
declare
  present bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'documents are changed in READ COMMITTED only' using errcode = '25001';
  end if;
  lock table doc in exclusive mode; -- whoever commits meanwhile would be overlooked
  present := version_above(greatest((select max(d.version) from doc d), (select s.floor from space s where s.one)));
  delete from item i where i.content is null;
  update doc d set version = present,
    ctime = case d.ctime when 0 then 0 else present end, dtime = case d.ctime when 0 then 0 else present end;
  delete from member m where m.has_left;
  update member m set version = present, xid = pg_current_xact_id();
  update collection c set floor = '0';
  -- Other namespaces may have taken values meanwhile: stampctl schema apply takes them again, or says which it cannot have.
  delete from unique_value v using unique_property u where u.number = v.property and u.is_global;
  insert into schema_fill (class, iclass, after, done) select distinct u.class, '', '', 0 from unique_property u where u.is_global
    on conflict (class, iclass) do update set after = '', done = 0;
  update unique_property u set is_ready = false where u.is_global;
  -- Numbers of transactions are those of another cluster: what was taken and not told is taken once more.
  insert into subs_touched (session, key, version)
    select t.session, t.key, min(t.version) from subs_touched t where t.taken <> 0 group by t.session, t.key
    on conflict (session, taken, key) do update set version = least(subs_touched.version, excluded.version);
  delete from subs_touched t where t.taken <> 0;
  update space set floor = present, life = (random() * 9007199254740991)::bigint where one;
  perform pg_notify('stampd', 'all');
  return present;
end $$;

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.global_claim(text[], text[], text[], text), stampd.global_drop(text[], text[], text[], text, bigint),
  stampd.global_key(text, text, text), stampd.global_note(jsonb, jsonb), stampd.global_changes(), stampd.global_look(text, text, text, bigint)
  to stampd;
