-- Documents that end by themselves (maxLife of a schema), and how long deleted ones are remembered, by class (zombieDays).
--
-- Workers judge by the contents that they hold.  The table `ending` has the same for what is asked of the database: lists,
-- searches, unique values, and the deletion of what has ended.

create table stampd.ending_property (
  class    text collate "C" primary key,
  property text not null,
  is_ready boolean not null default false
);
comment on table stampd.ending_property is 'The maxLife of the schema that is applied; a trigger of table schema keeps it.';
grant select on stampd.ending_property to stampd;

create table stampd.ending (
  class text collate "C" not null,
  id    text collate "C" not null,
  until bigint not null,
  primary key (class, id)
);
comment on table stampd.ending is 'Documents that end by themselves, or have ended and are not deleted yet.';
comment on column stampd.ending.until is 'Minutes since 1970, UTC: from this one on the document is as if it were deleted.';
create index ending_due on stampd.ending (class, until, id);
grant select, insert, update, delete on stampd.ending to stampd;

alter table stampd.member add column until bigint;
comment on column stampd.member.until is 'The end of the document; null: it has none.';
-- Those that have ended since a synchronisation.
create index member_ends on stampd.member (collection, value, until, id) where until is not null and not has_left;

create function stampd.present_minute() returns bigint language sql volatile as $$
  select floor(extract(epoch from clock_timestamp()) / 60)::bigint
$$;
comment on function stampd.present_minute() is 'The present, in minutes since 1970.';

create function stampd.forget_endings() returns void language sql volatile set search_path = stampd, pg_temp as $$
  -- Those that had ended are members again: whoever held a token before is told.
  update member m set until = null, xid = pg_current_xact_id() from collection c
    where m.until is not null and c.number = m.collection and not exists (select from ending_property p where p.class = c.class);
  delete from ending e where not exists (select from ending_property p where p.class = e.class);
$$;
comment on function stampd.forget_endings() is
  'Takes away the ends of documents whose class declares none: once with the declaration, once more when nobody writes them any more.';

create function stampd.follow_endings() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
declare
  classes constant json := new.content::json -> 'classes';
  changed boolean;
begin
  with gone as (
    delete from ending_property e where e.property is distinct from (classes #>> array[e.class, 'maxLife']) returning e.class
  ) select count(*) > 0 into changed from gone;
  if changed then
    perform forget_endings();
  end if;
  insert into ending_property (class, property)
    select c.key, c.value ->> 'maxLife' from json_each(classes) c where c.value ->> 'maxLife' is not null order by c.key
    on conflict (class) do nothing;
  changed := changed or found;
  -- What is new must be filled from the start.
  insert into schema_fill (class, iclass, after, done)
    select e.class, '', '', 0 from ending_property e where not e.is_ready
    on conflict (class, iclass) do update set after = '', done = 0;
  if changed then
    perform pg_notify('stampd', 'all'); -- copies in caches were judged by the schema before
  end if;
  return null;
end $$;
comment on function stampd.follow_endings() is 'Trigger: which property ends the documents of a class is what the schema says.';
create trigger follow_endings after update of content on stampd.schema
  for each row execute function stampd.follow_endings();

-- --- keeping the rows right ---

create function stampd.ending_write(of_class text, ids text[]) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  of_property text;
begin
  select e.property into of_property from ending_property e where e.class = of_class;
  if of_property is null then
    return false;
  end if;
  -- Whoever takes a value of one that has ended holds its row here, so that it does not come back at that moment.
  with present as materialized (
    select d.id, export_long(property_json(of_class, d.id, of_property)) as until from doc d
      where d.class = of_class and d.id = any (ids) and d.ctime <> 0
  ), gone as (
    delete from ending e where e.class = of_class and e.id = any (ids)
      and not exists (select from present p where p.id = e.id and p.until is not null)
  )
  insert into ending as e (class, id, until) select of_class, p.id, p.until from present p where p.until is not null order by p.id
    on conflict (class, id) do update set until = excluded.until where e.until <> excluded.until;
  return true;
end $$;
comment on function stampd.ending_write(text, text[]) is
  'Brings the ends of documents to their contents; behind all that writes their items.  False: none of the class ends by itself.';

create function stampd.unique_release(of_class text, ids text[], minute bigint) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  ended text[];
begin
  select array_agg(l.id) into ended from (
    select e.id from unique_property u join doc d on d.class = of_class and d.id = any (ids) and d.ctime <> 0
      cross join lateral (select property_joined(of_class, d.id, u.keys) as value) t
      join unique_value v on v.property = u.number and v.value = t.value and v.id <> d.id
      join ending e on e.class = of_class and e.id = v.id and e.until <= minute
      where u.class = of_class order by e.id for update of e) l;
  if ended is not null then
    delete from unique_value v using unique_property u where u.class = of_class and v.property = u.number and v.id = any (ended);
  end if;
end $$;
comment on function stampd.unique_release(text, text[], bigint) is
  'Frees the unique values that these documents want and that belong to documents which have ended.';

create function stampd.is_alive(document stampd.doc, minute bigint) returns boolean
  language sql stable as $$
  select document.ctime <> 0 and not exists (
    select from stampd.ending e where e.class = document.class and e.id = document.id and e.until <= minute)
$$;
comment on function stampd.is_alive(stampd.doc, bigint) is 'Is it neither deleted nor ended by itself in this minute?';

drop function stampd.member_write(text, text[]);
create function stampd.member_write(of_class text, ids text[], minute bigint default stampd.present_minute()) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  twice     json;
  ends_here boolean := ending_write(of_class, ids);
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
  delete from unique_value v using unique_property u
    where u.class = of_class and v.property = u.number and v.id = any (ids)
      and v.value is distinct from (select property_joined(of_class, d.id, u.keys) from doc d
                                      where d.class = of_class and d.id = v.id and is_alive(d, minute));
  loop
    insert into unique_value (property, value, id)
      select t.number, t.value, t.id from (
        select u.number, d.id, property_joined(of_class, d.id, u.keys) as value
          from unique_property u join doc d on d.class = of_class and d.id = any (ids) and is_alive(d, minute)
          where u.class = of_class
      ) t where t.value is not null order by t.number, t.value, t.id
      on conflict (property, value) do nothing;
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
end $$;
comment on function stampd.member_write(text, text[], bigint) is
  'Brings members of collections, ends and unique values to the contents of documents that were written or deleted; behind all '
  'that writes their items.  ST005: a value is taken; the detail is JSON [property, document, document that has it].';

-- As before, but planned once in a session: functions in SQL are planned for each call.
create or replace function stampd.property_json(class text, id text, property text) returns json
  language plpgsql stable set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  content text;
begin
  select i.content into content from item i
    where i.class = property_json.class and i.id = property_json.id
      and i.iclass = split_part(property_json.property, '.', 1) and i.key = '' and i.content is not null and not i.raw;
  return export_object(content) -> substr(property, strpos(property, '.') + 1);
end $$;

create or replace function stampd.property_joined(class text, id text, keys text[]) returns text
  language plpgsql stable set search_path = stampd, pg_temp as $$
declare
  value  text;
  joined text := '';
begin
  for place in 1 .. cardinality(keys) loop
    value := property_text(property_json(class, id, keys[place]));
    if value is null then
      return null;
    end if;
    joined := joined || octet_length(value) || ':' || value;
  end loop;
  return case when cardinality(keys) = 1 then value else joined end;
end $$;

-- --- the end ---

create function stampd.end_document(held stampd.doc) returns stampd.doc
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  held.version := version_above(held.version);
  held.ctime := 0;
  held.dtime := 0;
  held.v1 := 0;
  held.v2 := 0;
  update doc d set version = held.version, ctime = 0, dtime = 0, v1 = 0, v2 = 0 where d.class = held.class and d.id = held.id;
  delete from item i where i.class = held.class and i.id = held.id;
  perform export_wipe(held.class, held.id);
  return held;
end $$;
comment on function stampd.end_document(stampd.doc) is 'Deletes a document whose row is locked; what is left of it.';

create or replace function stampd.lock_document(class text, id text) returns stampd.doc
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held doc;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'documents are changed in READ COMMITTED only' using errcode = '25001';
  end if;
  select * into held from doc d
    where d.class = lock_document.class and d.id = lock_document.id for no key update;
  if not found then
    -- Absence is held as workers hold it: by a lock on the name, taken in a statement before the look.
    perform pg_advisory_xact_lock(hashtextextended(lock_document.class || '.' || lock_document.id, 0));
    select * into held from doc d
      where d.class = lock_document.class and d.id = lock_document.id for no key update;
  end if;
  -- Whoever moves its end holds the row that is locked now: this statement sees what it is.
  perform from ending e join ending_property p on p.class = e.class
    where e.class = lock_document.class and e.id = lock_document.id and e.until <= present_minute();
  if found and held.ctime <> 0 then
    return end_document(held);
  end if;
  return held;
end $$;
comment on function stampd.lock_document(text, text) is
  'Locks the row of a document, or its absence, until the end of the transaction; null when there is no row.  One that has ended '
  'by itself is deleted first.';

create function stampd.end_documents(batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  kind    record;
  one     record;
  ended   bigint := 0;
  present constant bigint := present_minute();
begin
  for kind in select p.class from ending_property p order by p.class loop
    for one in select o.id from (
        select e.id from ending e where e.class = kind.class and e.until <= present order by e.until, e.id limit batch - ended) o
        order by o.id loop
      if (lock_document(kind.class, one.id)).class is null then
        delete from ending e where e.class = kind.class and e.id = one.id; -- its row was deleted by hand
      end if;
      ended := ended + 1;
    end loop;
  end loop;
  return ended;
end $$;
comment on function stampd.end_documents(int) is
  'Deletes up to `batch` documents that have ended by themselves; nobody has seen them since.  Returns how many; call again until '
  'it returns 0.';

-- --- forgetting, by class ---

create function stampd.zombie_limits() returns jsonb
  language sql stable set search_path = stampd, pg_temp as $$
  select coalesce(jsonb_object_agg(c.key, least(stamp_of(now() - (c.value ->> 'zombieDays')::int * interval '1 day'), stamp_now())), '{}')
    from schema s cross join lateral json_each(s.content::json -> 'classes') c
    where s.one and c.value ->> 'zombieDays' is not null
$$;
comment on function stampd.zombie_limits() is
  'For each class with zombieDays the stamp before which what was deleted may be forgotten.';

create or replace function stampd.purge_zombies(older_than_stamp bigint, batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  classes text[];
  ids     text[];
  highest bigint;
  purged  bigint;
  -- A zombie stamped in the future waits for its time, so that the floor stays behind the clock.
  before constant bigint := least(older_than_stamp, stamp_now());
  limits constant jsonb := zombie_limits();
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'documents are changed in READ COMMITTED only' using errcode = '25001';
  end if;
  select array_agg(z.class), array_agg(z.id) into classes, ids
    from (select d.class, d.id from doc d
            where d.ctime = 0 and d.version < coalesce((limits ->> d.class)::bigint, before)
            order by d.class, d.id limit batch for update) z;
  with gone as (
    delete from doc d using unnest(classes, ids) z(class, id) where d.class = z.class and d.id = z.id
    returning d.version
  ) select count(*), max(version) into purged, highest from gone;
  update space set floor = highest where one and floor < highest;
  return purged;
end $$;
comment on function stampd.purge_zombies(bigint, int) is
  'Forgets up to `batch` documents deleted before the stamp, of classes with zombieDays before so many days, and moves the floor '
  'over their versions.  Returns how many; call again until it returns 0.  The stamp must lie further back than any holder of '
  'copies may stay away.';

create or replace function stampd.purge_members(older_than_stamp bigint, batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  one     record;
  purged  bigint := 0;
  removed bigint;
  highest xid8;
  limits  constant jsonb := zombie_limits();
begin
  for one in select c.number, coalesce((limits ->> c.class)::bigint, older_than_stamp) as before from collection c order by c.number loop
    with old as (
      select m.id, m.value from member m where m.collection = one.number and m.has_left and m.version < one.before
        order by m.version limit batch - purged for update skip locked
    ), gone as (
      delete from member m using old o where m.collection = one.number and m.id = o.id and m.value = o.value returning m.xid
    ) select count(*), max(g.xid) into removed, highest from gone g;
    update collection c set floor = highest where c.number = one.number and c.floor < highest;
    purged := purged + removed;
    exit when purged >= batch;
  end loop;
  if purged < batch then -- of declarations that are no more
    delete from member m where (m.collection, m.id, m.value) in (
      select o.collection, o.id, o.value from member o
        where not exists (select from collection c where c.number = o.collection) limit batch - purged);
    get diagnostics removed = row_count;
    purged := purged + removed;
  end if;
  return purged;
end $$;
comment on function stampd.purge_members(bigint, int) is
  'Forgets up to `batch` departures from collections that are older than the stamp, of classes with zombieDays older than so many '
  'days.  Returns how many; call again until it returns 0.  Holders of older tokens get their collections complete.';

create or replace function stampd.renew_life() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  truncate member, unique_value, ending;
  update space set life = (random() * 9007199254740991)::bigint where one;
  return null;
end $$;

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.present_minute(), stampd.is_alive(stampd.doc, bigint), stampd.ending_write(text, text[]), stampd.unique_release(text, text[], bigint),
  stampd.member_write(text, text[], bigint) to stampd;
