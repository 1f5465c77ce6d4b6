-- Collections: the documents of a class that share the value of a property.  doc/reference/collections.md describes the model.  What is declared
-- is in the schema; this keeps the rows right, for workers and administrators alike.

-- --- what is declared ---

create table stampd.collection (
  number     bigint generated always as identity primary key,
  class      text collate "C" not null,
  name       text collate "C" not null,
  keys       text[] not null,
  is_list    boolean not null,
  is_ready   boolean not null default false,
  floor      xid8 not null default '0',
  is_mutable boolean not null default true,
  unique (class, name)
);
comment on table stampd.collection is 'The collections of the schema that is applied; a trigger of table schema keeps it.';
comment on column stampd.collection.number is 'Another declaration under the same name has another number: its members are others.';
comment on column stampd.collection.keys is 'Properties, each Item.member, of singletons; or Item: the keys of its items, which are a list.';
comment on column stampd.collection.is_list is 'The property is a list; the document is a member under each of its elements.';
comment on column stampd.collection.is_ready is 'The documents that were there before are members too.';
comment on column stampd.collection.floor is 'Departures of this transaction and older ones may be purged.';
comment on column stampd.collection.is_mutable is 'Documents that live on may leave it; else their commit is refused.';
grant select on stampd.collection to stampd;
grant update (floor) on stampd.collection to stampd;

create table stampd.member (
  collection bigint not null,
  id         text collate "C" not null,
  value      text collate "C" not null,
  version    bigint not null,
  xid        xid8 not null,
  has_left   boolean not null,
  until      bigint,
  was_here   boolean not null default false,
  primary key (collection, id, value)
) with (fillfactor = 90);
comment on table stampd.member is 'Documents in collections, and those that have left them.';
comment on column stampd.member.value is
  'Value of the property, of more than 255 bytes a hash of it; joined from several: octets, a colon, the value, each.';
comment on column stampd.member.version is 'Version of the document when it last changed or left.';
comment on column stampd.member.xid is 'The transaction that wrote the row.';
comment on column stampd.member.has_left is 'The document is here no more, or is no more; kept so that clients with a copy get it.';
comment on column stampd.member.until is 'The end of the document; null: it has none.';
comment on column stampd.member.was_here is 'It was a member before the transaction that wrote the row.';
-- Synchronisation: what one collection has seen since a transaction.  The condition is always true, and follows from each comparison of
-- a value: it keeps the index from look-ups by document, for which plans made while the table is empty would choose it and read all of it.
create index member_changed on stampd.member (collection, value, xid, id) where value is not null;
-- Those that have ended since a synchronisation.
create index member_expiry on stampd.member (collection, value, until, id) where until is not null and not has_left;
-- Purging, the oldest first.
create index member_left on stampd.member (collection, version) where has_left;
grant select, insert, update, delete on stampd.member to stampd;

-- Tokens of collections after a crash of PostgreSQL.
--
-- A token has the number of the transaction up to which a client has the collection.  PostgreSQL gives numbers again of which it
-- had written nothing to the disk when it crashed: those of transactions that were undone just before.  A token that is beyond
-- them would miss what is done under them now.  So tokens are valid in one epoch: what is not logged is empty
-- after a crash, and on a standby that takes over.
create unlogged table stampd.since_crash (
  one  boolean primary key default true check (one),
  mark bigint not null default (random() * 9007199254740991)::bigint
);
comment on table stampd.since_crash is 'One row, gone after a crash of PostgreSQL: then a worker makes another.';
comment on column stampd.since_crash.mark is 'With the epoch of table namespace: tokens of collections are valid for as long as both stay.';
insert into stampd.since_crash default values;
grant select, insert on stampd.since_crash to stampd;

-- --- unique properties ---

create table stampd.unique_property (
  number    bigint generated always as identity primary key,
  class     text collate "C" not null,
  name      text collate "C" not null,
  keys      text[] not null,
  is_ready  boolean not null default false,
  is_global boolean not null default false,
  unique (class, name)
);
comment on table stampd.unique_property is 'The unique properties of the schema that is applied; a trigger of table schema keeps it.';
comment on column stampd.unique_property.is_global is 'Unique in all namespaces that declare it so.';
grant select on stampd.unique_property to stampd;

-- --- following the schema ---

create function stampd.follow_schema() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  create temp table declared on commit drop as
    select c.key as class, kind.key as kind, p.key as name, coalesce((p.value ->> 'list')::boolean, p.value -> 'keys' is not null) as is_list,
           coalesce((p.value ->> 'mutable')::boolean, false) as is_mutable, coalesce((p.value ->> 'global')::boolean, false) as is_global,
           case when p.value -> 'keys' is null then array(select json_array_elements_text(p.value -> 'key')) else array[p.value ->> 'keys'] end as keys
      from json_each(new.content::json -> 'classes') c
      cross join lateral (values ('collections'), ('unique')) kind(key)
      cross join lateral json_each(coalesce(c.value -> kind.key, '{}')) p;
  delete from collection o where not exists (select from declared d where d.kind = 'collections' and d.class = o.class
    and d.name = o.name and d.keys = o.keys and d.is_list = o.is_list);
  insert into collection (class, name, keys, is_list, is_mutable)
    select d.class, d.name, d.keys, d.is_list, d.is_mutable from declared d where d.kind = 'collections' order by d.class, d.name
    on conflict (class, name) do update set is_mutable = excluded.is_mutable where collection.is_mutable <> excluded.is_mutable;
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
comment on function stampd.follow_schema() is 'Trigger: collections and unique properties are those of the schema.';
create trigger follow_schema after update of content on stampd.schema
  for each row execute function stampd.follow_schema();

create function stampd.notify_collection() returns trigger language plpgsql as $$
begin
  perform pg_notify('stampd', 'all'); -- as with doc: anything may have changed; many in one transaction are one
  return null;
end $$;
comment on function stampd.notify_collection() is 'Trigger: sends `all` on the channel stampd when a collection is declared, filled or dropped.';
create trigger notify_collection after insert or delete or update of is_ready on stampd.collection
  for each row execute function stampd.notify_collection();

-- --- values ---

create function stampd.property_text_long(value text) returns text language sql immutable parallel safe as $$
  select rpad(octet_length(value) || ' bytes, sha256 ' || encode(sha256(convert_to(value, 'UTF8')), 'hex'), 256)
$$;
comment on function stampd.property_text_long(text) is 'property_text() of a value of more than 255 bytes.';
-- An expression, which PostgreSQL puts in place of a call: a list has thousands of elements.
create function stampd.property_text(value json) returns text language sql immutable parallel safe as $$
  select case
    when json_typeof(value) not in ('string', 'number', 'boolean') then null
    when octet_length(value #>> '{}') <= 255 then value #>> '{}'
    else stampd.property_text_long(value #>> '{}')
  end
$$;
comment on function stampd.property_text(json) is
  'The value by which a document is a member, or which no other may have: the characters of a string, a number or a truth value as it is '
  'written; of more than 255 bytes a hash, which has 256 bytes, so it is no value itself.  Null: there is none.';

create function stampd.property_texts(value json) returns text[] language sql immutable parallel safe as $$
  select case when stampd.export_is_list(value) then array(
    select v from (select stampd.property_text(e) as v from stampd.export_elements(value) e) o where v is not null) end
$$;
comment on function stampd.property_texts(json) is 'The same of the elements of a list that is exported; those that have none are left out.';

-- Called for each document and each property: a function that sets a parameter would cost as much as all that this does.
create function stampd.property_json(class text, id text, property text, is_compared boolean default false) returns json
  language plpgsql stable as $$
#variable_conflict use_column
declare
  content text;
begin
  select i.content into content from stampd.item i
    where i.class = property_json.class and i.id = property_json.id
      and i.iclass = split_part(property_json.property, '.', 1) and i.key = '' and i.content is not null and not i.raw;
  return stampd.export_object(content) -> ((case when is_compared and starts_with(content, '~') then '~' else '' end)
                                    || substr(property, strpos(property, '.') + 1));
end $$;
comment on function stampd.property_json(text, text, text, boolean) is
  'The member Item.member of a document; null: there is none.  In an encrypted namespace, of a value that is only compared, its hash.';

create function stampd.property_item_keys(of_class text, of_id text, of_iclass text) returns setof text language plpgsql stable as $$
begin
  return query select case when starts_with(i.content, '~') then stampd.export_object(i.content) ->> '~' else i.key end
    from stampd.item i
    where i.class = of_class and i.id = of_id and i.iclass = of_iclass and i.key <> '' and i.content is not null and not i.raw;
end $$;
comment on function stampd.property_item_keys(text, text, text) is
  'The keys of the items of a class in a document; in an encrypted namespace their hashes, null: none is shown.';

create function stampd.property_joined(class text, id text, keys text[]) returns text
  language plpgsql stable as $$
declare
  member json;
  value  text;
  joined text := '';
begin
  for nth in 1 .. cardinality(keys) loop
    member := stampd.property_json(class, id, keys[nth], true);
    value := stampd.property_text(member);
    if value is null then
      return null;
    end if;
    joined := joined || octet_length(value) || ':' || value;
  end loop;
  return case when cardinality(keys) = 1 then value else joined end;
end $$;
comment on function stampd.property_joined(text, text, text[]) is
  'The value under which a document is found, or which no other may have; null when a property has none.';

-- --- keeping the rows right ---

create function stampd.member_values(of_class text, ids text[]) returns table (collection bigint, id text, value text, version bigint)
  language sql stable rows 10 as $$
  select c.number, d.id, v.value, d.version
    from stampd.docs_of(of_class, ids) d join stampd.collection c on c.class = of_class and d.ctime <> 0
    cross join lateral (
      select stampd.property_joined(of_class, d.id, c.keys) as value where not c.is_list
      union
      select stampd.property_text(e) from stampd.export_elements(stampd.property_json(of_class, d.id, c.keys[1], true)) e
        where c.is_list and strpos(c.keys[1], '.') > 0
      union all
      select k from stampd.property_item_keys(of_class, d.id, c.keys[1]) k where c.is_list and strpos(c.keys[1], '.') = 0
    ) v where v.value is not null
$$;
comment on function stampd.member_values(text, text[]) is 'In which collections these documents are, by their present contents.';
-- What a document has left is found in a table of what it is in: one lookup for each of its values.  Comparing each with all of them
-- took 13 s for a list of 8,000 values, in every commit of the document.
--
-- A list gives a collection as many values as it has elements, and each is a row.  How many a document may have is a setting of the
-- server, limit_collection_values, which its sessions pass in stampd.collection_values; sessions of administrators have no limit.
create function stampd.member_write(of_class text, ids text[], minute bigint default stampd.present_minute()) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  ends_here boolean := expiry_write(of_class, ids);
  most      bigint := nullif(current_setting('stampd.collection_values', true), '');
  too_many  json;
  fixed     json;
begin
  with present as materialized (select * from member_values(of_class, ids)
  ), too_long as materialized (
    select count(*) as number from present p group by p.collection, p.id having count(*) > most
  ), stays as (
    insert into member (collection, id, value, version, xid, has_left, until)
      select p.collection, p.id, p.value, p.version, pg_current_xact_id(), false, e.until
        from present p
        left join lateral (select e.until from expiry e where ends_here and e.class = of_class and e.id = p.id offset 0) e on true
        where not exists (select from too_long)
      on conflict (collection, id, value) do update
        set version = excluded.version, xid = excluded.xid, has_left = false, until = excluded.until,
            was_here = case when member.xid = excluded.xid then member.was_here else not member.has_left end
  ), gone as (
    update member m set has_left = true, xid = pg_current_xact_id(), until = null,
                        version = (select d.version from doc d where d.class = of_class and d.id = m.id),
                        was_here = m.xid <> pg_current_xact_id() or m.was_here
      where m.ctid = any (array(
        select l.place
          from collection c cross join docs_of(of_class, ids) d
          cross join lateral (select e.ctid as place, e.value from member e
                               where e.collection = c.number and e.id = d.id and not e.has_left offset 0) l
          where c.class = of_class and (c.number, d.id, l.value) not in (select p.collection, p.id, p.value from present p)))
      returning m.collection, m.id, m.value
  ), fixed as (
    -- It goes on: neither deleted nor born by this commit.
    select c.name, g.id, g.value from gone g
      cross join lateral (select c.name from collection c where c.number = g.collection and not c.is_mutable offset 0) c
      cross join lateral (select from doc d where d.class = of_class and d.id = g.id and d.ctime <> 0 and d.ctime < d.version offset 0) d
  ) select (select json_build_array('limit_collection_values', most::text, max(l.number)::text) from too_long l having count(*) > 0),
           (select json_build_array(g.name, of_class, g.id, g.value) from fixed g order by g.name, g.id limit 1)
      into too_many, fixed;
  if too_many is not null then
    perform fail('ST025', too_many::text);
  end if;
  if fixed is not null and coalesce(current_setting('stampd.rewrites', true), '') <> 'on' then
    perform fail('ST009', fixed::text);
  end if;
  perform unique_write(of_class, ids, minute, ends_here);
end $$;
comment on function stampd.member_write(text, text[], bigint) is
  'Brings members of collections, ends and unique values to the contents of documents that were written or deleted; behind all '
  'that writes their items.  ST005: a value is taken.  ST009: a document would leave a collection that is not mutable; the detail is JSON '
  '[collection, class, document, value].  ST025: a document would have more values in a collection than stampd.collection_values; '
  'the detail is JSON [limit, its value, values].';

create function stampd.fill_members(of_class text, batch int default 200) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
  ids text[];
begin
  insert into schema_fill (class, iclass, after, done) values (of_class, '', '', 0) on conflict (class, iclass) do nothing;
  ids := fill_next(of_class, '', batch, false);
  if ids is not null then
    perform member_write(of_class, ids);
  end if;
  return coalesce(cardinality(ids), 0);
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
  'Purges up to `batch` departures from collections that are older than the stamp, of classes with zombieDays older than so many '
  'days.  Returns how many; call again until it returns 0.  Holders of older tokens get their collections complete.';

create function stampd.renew_epoch() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  truncate member, unique_value, expiry;
  update namespace set epoch = (random() * 9007199254740991)::bigint where one;
  return null;
end $$;
comment on function stampd.renew_epoch() is 'Trigger: with all documents gone, collections begin anew.';
create trigger renew_epoch after truncate on stampd.doc
  for each statement execute function stampd.renew_epoch();

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.property_text(json), stampd.property_text_long(text), stampd.property_texts(json), stampd.property_json(text, text, text, boolean),
  stampd.property_item_keys(text, text, text),
  stampd.property_joined(text, text, text[]), stampd.member_values(text, text[]), stampd.member_write(text, text[], bigint)
  to stampd;
