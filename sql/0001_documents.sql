-- Documents, items, zombies and their floor.  README.md in this folder describes the model.
--
-- The administrator's role runs each file of this folder in one transaction, and owns what is made; the workers' role `stampd` gets
-- what it needs and no more.  A second run fails: the schema exists.

do $$
begin
  if not exists (select from pg_roles where rolname = 'stampd') then
    create role stampd login;
  end if;
exception when duplicate_object then null; -- made meanwhile for another database
end $$;
create schema stampd;
comment on schema stampd is 'Documents of one namespace of stampd.';
grant usage on schema stampd to stampd;

-- --- tables ---

create table stampd.migration (
  number  int primary key,
  name    text not null,
  applied timestamptz not null default now()
);
comment on table stampd.migration is 'Migrations that were applied; stampctl keeps it.';
grant select on stampd.migration to stampd;

create table stampd.namespace (
  one    boolean primary key default true check (one),
  floor  bigint not null,
  epoch  bigint not null default (random() * 9007199254740991)::bigint,
  secret text not null default
    encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex'),
  restored text not null default coalesce(current_setting('stampd.restored', true), '')
);
insert into stampd.namespace (floor) values (0);
comment on table stampd.namespace is 'Exactly one row: what concerns the whole namespace.';
comment on column stampd.namespace.floor is
  'No zombie that was purged had a higher version: a document without a row is born above it.';
comment on column stampd.namespace.epoch is 'Tokens of collections are valid in one epoch.';
comment on column stampd.namespace.secret is
  'Seals what clients keep and bring back: cursors, tokens of collections, ids of live events.  With another one all of those are refused.';
comment on column stampd.namespace.restored is
  'The last restore of the cluster (setting stampd.restored, of `stampctl restore`) after which after_restore() was called here.';
grant select, update on stampd.namespace to stampd;

create table stampd.doc (
  class   text collate "C" not null,
  id      text collate "C" not null,
  version bigint not null,
  ctime   bigint not null,
  dtime   bigint not null,
  v1      bigint not null,
  v2      bigint not null,
  primary key (class, id)
) with (fillfactor = 80);
comment on table stampd.doc is
  'Headers of documents.  A row with ctime 0 is a zombie: the document was deleted.  Never delete a row by hand.';
comment on column stampd.doc.version is 'Stamp of the last operation that changed the document; of a zombie, that of its deletion.';
comment on column stampd.doc.ctime is 'Stamp of the birth of this incarnation; 0: the document does not exist.';
comment on column stampd.doc.dtime is 'Removals of items later than this stamp are kept as tombstones; 0 for a zombie.';
comment on column stampd.doc.v1 is 'Bytes of the keys and contents of its items, tombstones left out.';
comment on column stampd.doc.v2 is 'Bytes of its attachments.';
-- The predicate changes at birth and death only, so other commits stay heap-only updates.
create index doc_zombie on stampd.doc (class, id) where ctime = 0;
grant select, insert, update, delete on stampd.doc to stampd;

create function stampd.docs_of(of_class text, ids text[]) returns setof stampd.doc language sql stable rows 10 as $$
  select d.* from unnest(ids) u(id)
    cross join lateral (select o.* from stampd.doc o where o.class = of_class and o.id = u.id offset 0) d
$$;
comment on function stampd.docs_of(text, text[]) is
  'The rows of these documents, each of which is looked up by itself: a plan made while the table is empty would read all of the class.';

create table stampd.item (
  class   text collate "C" not null,
  id      text collate "C" not null,
  iclass  text collate "C" not null,
  key     text collate "C" not null,
  version bigint not null,
  vop     bigint not null,
  content text,
  raw     boolean not null default false,
  primary key (class, id, iclass, key)
) with (fillfactor = 80);
comment on table stampd.item is
  'Items of documents.  No foreign key: a writer of an item holds the lock of its document''s row.';
comment on column stampd.item.iclass is 'Class of the item.';
comment on column stampd.item.key is 'Key in its class; empty: a singleton.';
comment on column stampd.item.version is 'Stamp of the operation that last wrote or removed it in this document.';
comment on column stampd.item.vop is 'Stamp of the operation that made the content; 0 for a tombstone.';
comment on column stampd.item.content is 'JSON as it was given, or text when raw; null: a tombstone, the item was removed.';
comment on column stampd.item.raw is 'The content is text, not JSON; false for a tombstone.';
-- Where an item is copied to: the documents that hold one of this class and key.  A singleton is no copy.  None of the columns ever
-- changes, so updates of items stay inside their page.
create index item_key on stampd.item (iclass, key, class, id) where key <> '';
grant select, insert, update, delete on stampd.item to stampd;

-- --- refusing a commit ---

create function stampd.fail(state text, what text) returns int language plpgsql volatile as $$
begin
  raise exception using errcode = state, message = 'commit refused', detail = what;
end $$;
comment on function stampd.fail(text, text) is
  'Refuses the whole commit with a state of src/store/refusal_table.h.';

create function stampd.check_isolation() returns void language plpgsql stable as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'documents are changed in READ COMMITTED only' using errcode = '25001';
  end if;
end $$;
comment on function stampd.check_isolation() is
  'For functions that change documents: refuses transactions whose later statements do not see what others have committed.';

-- --- stamps ---

create function stampd.stamp_of(moment timestamptz) returns bigint language sql stable as $$
  select to_char(moment at time zone 'UTC', 'YYMMDDHH24MISSMS')::bigint
$$;
comment on function stampd.stamp_of(timestamptz) is 'A moment as a stamp: yymmddhhmmssmmm, UTC.';

create function stampd.stamp_now() returns bigint language sql volatile as $$
  select stampd.stamp_of(clock_timestamp())
$$;
comment on function stampd.stamp_now() is 'The present as a stamp.';

create function stampd.present_minute() returns bigint language sql volatile as $$
  select floor(extract(epoch from clock_timestamp()) / 60)::bigint
$$;
comment on function stampd.present_minute() is 'The present, in minutes since 1970.';

create function stampd.minute_left_ms() returns bigint language sql volatile as $$
  select ceil(60000 - extract(epoch from clock_timestamp()) * 1000 % 60000)::bigint
$$;
comment on function stampd.minute_left_ms() is 'Milliseconds until the next minute begins.';

create function stampd.stamp_is_valid(stamp bigint) returns boolean
  language plpgsql immutable set search_path = stampd, pg_temp as $$
declare
  year   constant int := 2000 + stamp / 10000000000000;
  month  constant int := stamp / 100000000000 % 100;
  day    constant int := stamp / 1000000000 % 100;
  hour   constant int := stamp / 10000000 % 100;
  minute constant int := stamp / 100000 % 100;
  second constant int := stamp / 1000 % 100;
begin
  if stamp not between 101000000000 and 991231235959999 or month not between 1 and 12 or day not between 1 and 31
     or hour > 23 or minute > 59 or second > 59 then
    return false;
  end if;
  return day <= extract(day from make_date(year, month, 1) + interval '1 month - 1 day');
end $$;
comment on function stampd.stamp_is_valid(bigint) is 'Is the number a stamp, yymmddhhmmssmmm, of a day that there is?';

create function stampd.version_above(highest bigint) returns bigint language plpgsql volatile as $$
declare
  present constant bigint := stampd.stamp_now();
begin
  if highest is null or highest < present then
    return present;
  elsif highest % 1000 < 999 then
    return highest + 1;
  end if;
  return to_char(make_timestamp(2000 + (highest / 10000000000000)::int, (highest / 100000000000 % 100)::int,
      (highest / 1000000000 % 100)::int, (highest / 10000000 % 100)::int, (highest / 100000 % 100)::int,
      (highest % 100000) / 1000.0) + interval '1 millisecond', 'YYMMDDHH24MISSMS')::bigint;
end $$;
comment on function stampd.version_above(bigint) is
  'The version of a change: the present, or the next stamp above the highest version seen when that is later.';

-- --- notifying servers of changes that no worker made ---

create function stampd.notify_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform pg_notify('stampd', old.class || '.' || old.id);
  else
    perform pg_notify('stampd', new.class || '.' || new.id);
  end if;
  return null;
end $$;
comment on function stampd.notify_change() is 'Trigger: sends the class and id of a document on the channel stampd.';
create trigger notify_change after insert or update or delete on stampd.doc
  for each row when (current_setting('stampd.worker', true) is distinct from 'on')
  execute function stampd.notify_change();
comment on trigger notify_change on stampd.doc is
  'For changes of administrators and other programs: sessions of workers set stampd.worker = on and publish by themselves.';

create function stampd.notify_truncation() returns trigger language plpgsql as $$
begin
  if tg_when = 'BEFORE' then
    update stampd.namespace set floor = greatest(floor, (select max(d.version) from stampd.doc d)) where one;
    delete from stampd.owned;
    delete from stampd.account_bytes;
    update stampd.blob_ref set ended = stampd.stamp_now() where ended is null;
  else
    perform pg_notify('stampd', 'all');
  end if;
  return null;
end $$;
comment on function stampd.notify_truncation() is
  'Trigger: raises the floor over the versions of all documents, takes them from their owners, and sends `all` on the channel stampd.';
create trigger floor_over_truncation before truncate on stampd.doc
  for each statement execute function stampd.notify_truncation();
comment on trigger floor_over_truncation on stampd.doc is
  'Documents that are born after TRUNCATE are newer than those of the same name that were there before.';
create trigger notify_truncation after truncate on stampd.doc
  for each statement execute function stampd.notify_truncation();
comment on trigger notify_truncation on stampd.doc is 'Notifies all servers of a TRUNCATE, of doc and item together.';

-- --- servers acknowledge what was changed here ---

create sequence stampd.question_number;
comment on sequence stampd.question_number is 'Numbers of the questions of stampctl whether all servers obey what was committed before.';
create table stampd.server (
  name    text collate "C" primary key,
  pid     int not null,
  started timestamptz not null,
  obeys   bigint not null
);
comment on table stampd.server is 'The servers that listen to changes of this database; each keeps its own row.';
comment on column stampd.server.name is 'Host, and process id of the master.';
comment on column stampd.server.pid is 'Process of PostgreSQL that serves its relay.';
comment on column stampd.server.started is 'When that process began.';
comment on column stampd.server.obeys is 'The last question that it has answered: it serves nothing that is older than what was committed before.';
grant select, insert, update, delete on stampd.server to stampd;
grant select on sequence stampd.question_number to stampd;

create function stampd.servers_ask() returns bigint language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  number constant bigint := nextval('question_number');
begin
  perform pg_notify('stampd_obey', number::text);
  return number;
end $$;
comment on function stampd.servers_ask() is
  'Asks all servers whether they obey what was committed before; a transaction of its own.  Returns the number of the question.';

create function stampd.servers_missing(question bigint) returns table (name text, is_connected boolean)
  language sql volatile set search_path = stampd, pg_temp as $$
  select s.name, exists (select from pg_stat_activity a where a.pid = s.pid and a.backend_start = s.started)
    from server s where s.obeys < question order by s.name
$$;
comment on function stampd.servers_missing(bigint) is
  'The servers that have not answered the question, and whether they are connected: a server that connects obeys all that was committed before.';

create function stampd.servers_forget() returns void language sql volatile set search_path = stampd, pg_temp as $$
  delete from server s where not exists (select from pg_stat_activity a where a.pid = s.pid and a.backend_start = s.started)
$$;
comment on function stampd.servers_forget() is 'Removes the servers that are not connected: those that have died.';

-- --- administrators' functions ---

create function stampd.lock_document(class text, id text) returns stampd.doc
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held doc;
begin
  perform check_isolation();
  select * into held from doc d
    where d.class = lock_document.class and d.id = lock_document.id for no key update;
  if not found then
    -- Absence is held as workers hold it: by a lock on the name, taken in a statement before the one that reads.
    perform pg_advisory_xact_lock(hashtextextended(lock_document.class || '.' || lock_document.id, 0));
    select * into held from doc d
      where d.class = lock_document.class and d.id = lock_document.id for no key update;
  end if;
  -- A transaction that moves its expiry holds the row that is locked now: this statement sees the result.
  perform from expiry e join expiry_property p on p.class = e.class
    where e.class = lock_document.class and e.id = lock_document.id and e.until <= present_minute();
  if found and held.ctime <> 0 then
    return expire_document(held);
  end if;
  return held;
end $$;
comment on function stampd.lock_document(text, text) is
  'Locks the row of a document, or its absence, until the end of the transaction; null when there is no row.  One that has ended '
  'by itself is deleted first.';

create function stampd.put_item(class text, id text, iclass text, key text, content text, raw boolean default false)
  returns bigint language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  is_raw  constant boolean := coalesce(put_item.raw, false) and put_item.content is not null;
  rules   constant json := case when not is_raw then mutate_rules(put_item.class, put_item.iclass) end;
  given   text := put_item.content;
  held    doc;
  present item;
  changed bigint;
  volume  bigint;
begin
  if put_item.class is null or put_item.class !~ '^[A-Z][A-Za-z0-9]{0,15}$' then
    raise exception 'not a name for a class of documents: %', put_item.class using errcode = '22023';
  elsif put_item.iclass is null or put_item.iclass !~ '^[A-Z][A-Za-z0-9]{0,15}$' then
    raise exception 'not a name for a class of items: %', put_item.iclass using errcode = '22023';
  elsif put_item.iclass = 'P' then
    raise exception 'the class P of items is reserved for attachments' using errcode = '22023';
  elsif put_item.id is null or octet_length(put_item.id) not between 1 and 255 then
    raise exception 'an id has 1 to 255 bytes' using errcode = '22023';
  elsif put_item.key is null or octet_length(put_item.key) > 255 then
    raise exception 'a key has 0 to 255 bytes' using errcode = '22023';
  end if;
  if not is_raw then
    perform given::jsonb; -- refuses what is no JSON
    if rules is not null and given is not null then
      given := mutate_content(rules, given);
    end if;
  end if;

  held := lock_document(put_item.class, put_item.id);
  if coalesce(held.ctime, 0) <> 0 then
    select * into present from item i
      where i.class = put_item.class and i.id = put_item.id and i.iclass = put_item.iclass and i.key = put_item.key;
    if present.content is not distinct from given and coalesce(present.raw, false) = is_raw then
      return held.version; -- the same content is no change
    end if;
  elsif given is null then
    return null;
  end if;

  changed := version_above(coalesce(held.version, (select floor from namespace where one)));
  select coalesce(sum(octet_length(i.key) + octet_length(i.content)), 0) into volume from item i
    where i.class = put_item.class and i.id = put_item.id and i.content is not null
      and (i.iclass, i.key) <> (put_item.iclass, put_item.key);
  volume := volume + coalesce(octet_length(put_item.key) + octet_length(given), 0);
  if held.class is null then
    insert into doc (class, id, version, ctime, dtime, v1, v2)
      values (put_item.class, put_item.id, changed, changed, changed, volume, 0);
  else
    update doc d set version = changed, v1 = volume,
        ctime = case when d.ctime = 0 then changed else d.ctime end,
        dtime = case when d.ctime = 0 then changed else d.dtime end
      where d.class = put_item.class and d.id = put_item.id;
  end if;
  insert into item (class, id, iclass, key, version, vop, content, raw)
    values (put_item.class, put_item.id, put_item.iclass, put_item.key, changed,
            case when given is null then 0 else changed end, given, is_raw)
    on conflict on constraint item_pkey do update
      set version = excluded.version, vop = excluded.vop, content = excluded.content, raw = excluded.raw;
  perform export_item(put_item.class, put_item.id, put_item.iclass, put_item.key);
  return changed;
end $$;
comment on function stampd.put_item(text, text, text, text, text, boolean) is
  'Sets an item; creates the document when there is none; a null content removes the item.  Rules of the class for older releases '
  'are applied.  Returns the version of the document, null when there is none.';

create function stampd.delete_document(class text, id text) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held    doc;
  changed bigint;
begin
  held := lock_document(delete_document.class, delete_document.id);
  if coalesce(held.ctime, 0) = 0 then
    return null;
  end if;
  changed := version_above(held.version);
  update doc d set version = changed, ctime = 0, dtime = 0, v1 = 0, v2 = 0
    where d.class = delete_document.class and d.id = delete_document.id;
  delete from item i where i.class = delete_document.class and i.id = delete_document.id;
  perform export_wipe(delete_document.class, delete_document.id);
  return changed;
end $$;
comment on function stampd.delete_document(text, text) is
  'Deletes a document: its items go, its row stays as a zombie.  Returns the version of the deletion, null when there was '
  'no document.';

create function stampd.purge_zombies(older_than_stamp bigint, batch int default 1000) returns bigint
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
  perform check_isolation();
  select array_agg(z.class), array_agg(z.id) into classes, ids
    from (select d.class, d.id from doc d
            where d.ctime = 0 and d.version < coalesce((limits ->> d.class)::bigint, before)
            order by d.class, d.id limit batch for update) z;
  with gone as (
    delete from doc d using unnest(classes, ids) z(class, id) where d.class = z.class and d.id = z.id
    returning d.version
  ) select count(*), max(version) into purged, highest from gone;
  update namespace set floor = highest where one and floor < highest;
  return purged;
end $$;
comment on function stampd.purge_zombies(bigint, int) is
  'Purges up to `batch` documents deleted before the stamp, of classes with zombieDays before so many days, and moves the floor '
  'over their versions.  Returns how many; call again until it returns 0.  The stamp must lie further back than any client with '
  'copies may stay away.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.fail(text, text), stampd.docs_of(text, text[]), stampd.stamp_of(timestamptz), stampd.stamp_now(), stampd.present_minute(),
  stampd.stamp_is_valid(bigint), stampd.version_above(bigint) to stampd;

-- --- the workers' role ---

do $$
begin
  -- Refusals are everyday errors; without this each one logs the whole statement.
  execute format('alter role stampd in database %I set log_min_error_statement = panic', current_database());
exception when insufficient_privilege then
  raise notice 'a superuser may run: alter role stampd in database % set log_min_error_statement = panic',
    quote_ident(current_database());
end $$;
