-- Documents that expire (maxLife of a schema), and how long deleted ones are kept as zombies, by class (zombieDays).
--
-- Workers judge by the contents that they have.  The table `expiry` has the same for the queries of the database: lists, searches,
-- unique values, and the deletion of what has expired.

create table stampd.expiry_property (
  class    text collate "C" primary key,
  property text not null,
  is_ready boolean not null default false
);
comment on table stampd.expiry_property is 'The maxLife of the schema that is applied; a trigger of table schema keeps it.';
grant select on stampd.expiry_property to stampd;

create table stampd.expiry (
  class text collate "C" not null,
  id    text collate "C" not null,
  until bigint not null,
  primary key (class, id)
);
comment on table stampd.expiry is 'Documents that will expire, or have expired and are not deleted yet.';
comment on column stampd.expiry.until is 'Minutes since 1970, UTC: from this one on the document is as if it were deleted.';
-- Its condition is there for the same reason as that of member_changed.
create index expiry_due on stampd.expiry (class, until, id) where until is not null;
grant select, insert, update, delete on stampd.expiry to stampd;

create function stampd.is_alive(document stampd.doc, minute bigint) returns boolean
  language sql stable as $$
  select document.ctime <> 0 and not exists (
    select from stampd.expiry e where e.class = document.class and e.id = document.id and e.until <= minute)
$$;
comment on function stampd.is_alive(stampd.doc, bigint) is 'Is it neither deleted nor ended by itself in this minute?';

-- --- keeping the rows right ---

create function stampd.expiry_write(of_class text, ids text[]) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  of_property text;
begin
  select e.property into of_property from expiry_property e where e.class = of_class;
  if of_property is null then
    return false;
  end if;
  -- A transaction that takes a value of one that has expired holds its row here, so that it does not come back at that moment.
  with present as materialized (
    select d.id, export_long(property_json(of_class, d.id, of_property)) as until from docs_of(of_class, ids) d where d.ctime <> 0
  ), gone as (
    delete from expiry e where e.class = of_class and e.id = any (ids)
      and not exists (select from present p where p.id = e.id and p.until is not null)
  )
  insert into expiry as e (class, id, until) select of_class, p.id, p.until from present p where p.until is not null order by p.id
    on conflict (class, id) do update set until = excluded.until where e.until <> excluded.until;
  return true;
end $$;
comment on function stampd.expiry_write(text, text[]) is
  'Brings the ends of documents to their contents; behind all that writes their items.  False: none of the class ends by itself.';

-- --- the end ---

create function stampd.expire_document(held stampd.doc) returns stampd.doc
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
comment on function stampd.expire_document(stampd.doc) is 'Deletes a document whose row is locked; what is left of it.';

create function stampd.expire_documents(batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  kind    record;
  one     record;
  ended   bigint := 0;
  present constant bigint := present_minute();
begin
  for kind in select p.class from expiry_property p order by p.class loop
    for one in select o.id from (
        select e.id from expiry e where e.class = kind.class and e.until <= present order by e.until, e.id limit batch - ended) o
        order by o.id loop
      if (lock_document(kind.class, one.id)).class is null then
        delete from expiry e where e.class = kind.class and e.id = one.id; -- its row was deleted by hand
      end if;
      ended := ended + 1;
    end loop;
  end loop;
  return ended;
end $$;
comment on function stampd.expire_documents(int) is
  'Deletes up to `batch` documents that have expired; no reader has seen them since.  Returns how many; call again until '
  'it returns 0.';

-- --- what the schema declares ---

create function stampd.drop_expiry() returns void language sql volatile set search_path = stampd, pg_temp as $$
  -- Those that had expired are members again: clients with an older token get them.
  update member m set until = null, xid = pg_current_xact_id() from collection c
    where m.until is not null and c.number = m.collection and not exists (select from expiry_property p where p.class = c.class);
  delete from expiry e where not exists (select from expiry_property p where p.class = e.class);
$$;
comment on function stampd.drop_expiry() is
  'Drops the expiry of documents whose class declares none: once with the declaration, once more when no session writes it any more.';

create function stampd.follow_expiry() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
declare
  classes constant json := new.content::json -> 'classes';
  changed boolean;
begin
  with gone as (
    delete from expiry_property e where e.property is distinct from (classes #>> array[e.class, 'maxLife']) returning e.class
  ) select count(*) > 0 into changed from gone;
  if changed then
    perform drop_expiry();
  end if;
  insert into expiry_property (class, property)
    select c.key, c.value ->> 'maxLife' from json_each(classes) c where c.value ->> 'maxLife' is not null order by c.key
    on conflict (class) do nothing;
  changed := changed or found;
  -- What is new must be filled from the start.
  insert into schema_fill (class, iclass, after, done)
    select e.class, '', '', 0 from expiry_property e where not e.is_ready
    on conflict (class, iclass) do update set after = '', done = 0;
  if changed then
    perform pg_notify('stampd', 'all'); -- copies in caches were judged by the schema before
  end if;
  return null;
end $$;
comment on function stampd.follow_expiry() is 'Trigger: takes from the schema by which property the documents of a class expire.';
create trigger follow_expiry after update of content on stampd.schema
  for each row execute function stampd.follow_expiry();

create function stampd.zombie_limits() returns jsonb
  language sql stable set search_path = stampd, pg_temp as $$
  select coalesce(jsonb_object_agg(c.key, least(stamp_of(now() - (c.value ->> 'zombieDays')::int * interval '1 day'), stamp_now())), '{}')
    from schema s cross join lateral json_each(s.content::json -> 'classes') c
    where s.one and c.value ->> 'zombieDays' is not null
$$;
comment on function stampd.zombie_limits() is
  'For each class with zombieDays the stamp before which what was deleted may be purged.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.is_alive(stampd.doc, bigint), stampd.expiry_write(text, text[]) to stampd;
