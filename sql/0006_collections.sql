-- Collections: the documents of a class that share the value of a property; and unique properties.  collections.md tells
-- the model.  What is declared is in the schema; here is what keeps the rows right, for workers and administrators alike.

-- --- what is declared ---

create table stampd.collection (
  number   bigint generated always as identity primary key,
  class    text collate "C" not null,
  name     text collate "C" not null,
  keys     text[] not null,
  is_list  boolean not null,
  is_ready boolean not null default false,
  floor    xid8 not null default '0',
  unique (class, name)
);
comment on table stampd.collection is 'The collections of the schema that is applied; a trigger of table schema keeps it.';
comment on column stampd.collection.number is 'Another declaration under the same name has another number: its members are others.';
comment on column stampd.collection.keys is 'Properties, each Item.member, of singletons.';
comment on column stampd.collection.is_list is 'The property is a list; the document is a member under each of its elements.';
comment on column stampd.collection.is_ready is 'The documents that were there before are members too.';
comment on column stampd.collection.floor is 'Departures of this transaction and older ones may be forgotten.';
grant select on stampd.collection to stampd;
grant update (floor) on stampd.collection to stampd;

create table stampd.member (
  collection bigint not null,
  id         text collate "C" not null,
  value      text collate "C" not null,
  version    bigint not null,
  xid        xid8 not null,
  has_left   boolean not null,
  primary key (collection, id, value)
) with (fillfactor = 90);
comment on table stampd.member is 'Documents in collections, and those that have left them.';
comment on column stampd.member.value is 'Value of the property, joined from several: octets, a colon, the value, each.';
comment on column stampd.member.version is 'Version of the document when it last changed or left.';
comment on column stampd.member.xid is 'The transaction that wrote the row.';
comment on column stampd.member.has_left is 'The document is here no more, or is no more; kept so that holders of copies learn it.';
-- Synchronisation: what one collection has seen since a transaction.
create index member_changed on stampd.member (collection, value, xid, id);
-- Purging, the oldest first.
create index member_left on stampd.member (collection, version) where has_left;
grant select, insert, update, delete on stampd.member to stampd;

create table stampd.unique_property (
  number    bigint generated always as identity primary key,
  class     text collate "C" not null,
  name      text collate "C" not null,
  keys      text[] not null,
  is_ready  boolean not null default false,
  unique (class, name)
);
comment on table stampd.unique_property is 'The unique properties of the schema that is applied; a trigger of table schema keeps it.';
grant select on stampd.unique_property to stampd;

create table stampd.unique_value (
  property bigint not null,
  value    text collate "C" not null,
  id       text collate "C" not null,
  primary key (property, value)
);
create index unique_value_id on stampd.unique_value (property, id);
comment on table stampd.unique_value is 'Values that are taken, and by which document.';
grant select, insert, update, delete on stampd.unique_value to stampd;

-- A token of a synchronisation says which transactions its holder knows.  Numbers of transactions begin again after a
-- restore, and what TRUNCATE removed is told to nobody: then the life is another one, and tokens are of no use.
alter table stampd.space add column life bigint not null default (random() * 9007199254740991)::bigint;
comment on column stampd.space.life is 'Tokens of collections are good for one life.';

create function stampd.follow_schema() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  create temp table declared on commit drop as
    select c.key as class, kind.key as kind, p.key as name, coalesce((p.value ->> 'list')::boolean, false) as is_list,
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
    and d.name = o.name and d.keys = o.keys);
  insert into unique_property (class, name, keys)
    select d.class, d.name, d.keys from declared d where d.kind = 'unique' order by d.class, d.name
    on conflict (class, name) do nothing;
  -- What is new must be filled from the start.
  insert into schema_fill (class, iclass, after, done)
    select c.class, '', '', 0 from collection c where not c.is_ready
    union select u.class, '', '', 0 from unique_property u where not u.is_ready
    on conflict (class, iclass) do update set after = '', done = 0;
  drop table declared;
  return null;
end $$;
comment on function stampd.follow_schema() is 'Trigger: collections and unique properties are those of the schema.';
create trigger follow_schema after update of content on stampd.schema
  for each row execute function stampd.follow_schema();

-- --- values of properties ---

create function stampd.property_text(value json) returns text language sql immutable parallel safe as $$
  select case when json_typeof(value) in ('string', 'number', 'boolean') and octet_length(value #>> '{}') <= 255
    then value #>> '{}' end
$$;
comment on function stampd.property_text(json) is
  'The value as text: of a string its characters, of a number or a truth value how it is written; null: it has none.';

create function stampd.property_json(class text, id text, property text) returns json language sql stable as $$
  select stampd.export_object(i.content) -> substr(property, strpos(property, '.') + 1) from stampd.item i
    where i.class = property_json.class and i.id = property_json.id
      and i.iclass = split_part(property, '.', 1) and i.key = '' and i.content is not null and not i.raw
$$;
comment on function stampd.property_json(text, text, text) is 'The member Item.member of a document; null: there is none.';

create function stampd.property_joined(class text, id text, keys text[]) returns text language sql stable as $$
  select case when bool_and(v.value is not null) then
      case when cardinality(keys) = 1 then min(v.value)
        else string_agg(octet_length(v.value) || ':' || v.value, '' order by v.place) end end
    from (select k.place, stampd.property_text(stampd.property_json(class, id, k.name)) as value
            from unnest(keys) with ordinality k(name, place)) v
$$;
comment on function stampd.property_joined(text, text, text[]) is
  'The value under which a document is found; null when a property has none.';

create function stampd.member_values(of_class text, ids text[]) returns table (collection bigint, id text, value text, version bigint)
  language sql stable rows 10 as $$
  select c.number, d.id, v.value, d.version
    from unnest(ids) u(id) join stampd.doc d on d.class = of_class and d.id = u.id and d.ctime <> 0
    join stampd.collection c on c.class = of_class
    cross join lateral (
      select stampd.property_joined(of_class, d.id, c.keys) as value where not c.is_list
      union
      select stampd.property_text(e) from stampd.export_elements(stampd.property_json(of_class, d.id, c.keys[1])) e where c.is_list
    ) v where v.value is not null
$$;
comment on function stampd.member_values(text, text[]) is 'In which collections these documents are, by their present contents.';

-- --- keeping the rows right ---

create function stampd.member_write(of_class text, ids text[]) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  twice json;
begin
  with present as materialized (select * from member_values(of_class, ids)
  ), stays as (
    insert into member (collection, id, value, version, xid, has_left)
      select p.collection, p.id, p.value, p.version, pg_current_xact_id(), false from present p
      on conflict (collection, id, value) do update
        set version = excluded.version, xid = excluded.xid, has_left = false
  )
  update member m set has_left = true, version = d.version, xid = pg_current_xact_id()
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
                                      where d.class = of_class and d.id = v.id and d.ctime <> 0);
  insert into unique_value (property, value, id)
    select t.number, t.value, t.id from (
      select u.number, d.id, property_joined(of_class, d.id, u.keys) as value
        from unique_property u join doc d on d.class = of_class and d.id = any (ids) and d.ctime <> 0 where u.class = of_class
    ) t where t.value is not null order by t.number, t.value, t.id
    on conflict (property, value) do nothing;
  -- Who came later has waited for the first; this statement sees what that one left.
  select json_build_array(u.name, t.id, v.id) into twice from unique_property u
    join doc d on d.class = of_class and d.id = any (ids) and d.ctime <> 0
    cross join lateral (select d.id, property_joined(of_class, d.id, u.keys) as value) t
    join unique_value v on v.property = u.number and v.value = t.value and v.id <> t.id
    where u.class = of_class limit 1;
  if found then
    perform fail('ST005', twice::text);
  end if;
end $$;
comment on function stampd.member_write(text, text[]) is
  'Brings members of collections and unique values to the contents of documents that were written or deleted; behind all that '
  'writes their items.  ST005: a value is taken; the detail is JSON [property, document, document that has it].';

create or replace function stampd.export_item(class text, id text, iclass text, key text) returns void
  language plpgsql volatile as $$
begin
  if to_regprocedure(format('stampd.%I(text[],text[])', 'x_' || class || '_' || iclass || '_write')) is not null then
    execute format('select stampd.%I($1, $2)', 'x_' || class || '_' || iclass || '_write') using array[id], array[key];
  end if;
  perform stampd.member_write(class, array[id]);
end $$;
comment on function stampd.export_item(text, text, text, text) is
  'Brings side tables and collections of a document to the content of an item; whoever writes one by SQL calls it behind.';

create or replace function stampd.export_wipe(class text, id text) returns void language plpgsql volatile as $$
declare
  wipe record;
begin
  for wipe in select p.proname from pg_catalog.pg_proc p
      where p.pronamespace = 'stampd'::regnamespace and p.proname ~ ('^x_' || class || '_[A-Z][A-Za-z0-9]*_wipe$') loop
    execute format('select stampd.%I($1)', wipe.proname) using array[id];
  end loop;
  perform stampd.member_write(class, array[id]);
end $$;
comment on function stampd.export_wipe(text, text) is 'Removes a document from all side tables and collections of its class.';

create function stampd.fill_members(of_class text, batch int default 200) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
  last_id text;
  ids     text[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'documents are changed in READ COMMITTED only' using errcode = '25001';
  end if;
  insert into schema_fill (class, iclass, after, done) values (of_class, '', '', 0) on conflict (class, iclass) do nothing;
  select after into last_id from schema_fill f where f.class = of_class and f.iclass = '' for update;
  -- Whoever changes a document holds its lock; contents are looked at in a later statement.
  select array_agg(o.id order by o.id) into ids from (
    select d.id from doc d where d.class = of_class and d.id > last_id and d.ctime <> 0
      order by d.id limit batch for share) o;
  if ids is null then
    return 0;
  end if;
  perform member_write(of_class, ids);
  update schema_fill f set after = ids[cardinality(ids)], done = f.done + cardinality(ids)
    where f.class = of_class and f.iclass = '';
  return cardinality(ids);
end $$;
comment on function stampd.fill_members(text, int) is
  'Takes the next documents of a class into its new collections; stampctl schema apply calls it until it returns 0.';

create function stampd.purge_members(older_than_stamp bigint, batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  one     record;
  purged  bigint := 0;
  removed bigint;
  highest xid8;
begin
  for one in select c.number from collection c order by c.number loop
    with old as (
      select m.id, m.value from member m where m.collection = one.number and m.has_left and m.version < older_than_stamp
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
  'Forgets up to `batch` departures from collections that are older than the stamp.  Returns how many; call again until it '
  'returns 0.  Holders of older tokens get their collections complete.';

create function stampd.renew_life() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  truncate member, unique_value;
  update space set life = (random() * 9007199254740991)::bigint where one;
  return null;
end $$;
comment on function stampd.renew_life() is 'Trigger: with all documents gone, collections begin anew.';
create trigger renew_life after truncate on stampd.doc
  for each statement execute function stampd.renew_life();

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
  update space set floor = present, life = (random() * 9007199254740991)::bigint where one;
  perform pg_notify('stampd', 'all');
  return present;
end $$;

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.property_text(json), stampd.property_json(text, text, text),
  stampd.property_joined(text, text, text[]), stampd.member_values(text, text[]), stampd.member_write(text, text[]) to stampd;
