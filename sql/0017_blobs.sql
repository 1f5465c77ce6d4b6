-- Attachments: which files the store of the namespace has, by SHA-256, and where they are attached (doc/reference/attachments.md).
--
-- The bytes lie in a store outside the database.  A file is registered here before it gets its name there, and removed there before its
-- row is deleted here, so no file that anything refers to can be missing, and what is left over after a crash is found.  A trigger on
-- the items P keeps the references in step, whatever program or function writes the items.
--
-- In an encrypted namespace a file has a keyed hash of its SHA-256 as its name, which stands for the digest here, its size is that on the
-- disk, and the type is encrypted: workers show all three behind the encrypted content (src/store/documents/store_shown.c).

create table stampd.blob (
  digest   bytea primary key check (octet_length(digest) = 32),
  size     bigint not null,
  touched  bigint not null,
  removing boolean not null default false,
  store    text collate "C",
  object   text collate "C",
  head     bytea check (octet_length(head) = 80),
  thumbnail text,
  check ((store is null) = (object is null)),
  check (store is not null or head is null)
) with (fillfactor = 80);
comment on table stampd.blob is 'A file that lies in the store, or is about to.';
comment on column stampd.blob.touched is 'Stamp of the last upload.';
comment on column stampd.blob.removing is 'A cleaner will remove it: nothing may refer to it, unless it is uploaded again.';
comment on column stampd.blob.store is 'The object store that has the file, whole and checked; null: the directory has it.';
comment on column stampd.blob.object is 'Its name there.';
comment on column stampd.blob.head is 'In an encrypted namespace the header of the object: which data key, its salt, its check.';
comment on column stampd.blob.thumbnail is 'Why no thumbnail can be made of it; null: that is not known.';
create index blob_removing on stampd.blob (digest) where removing;
create index blob_here on stampd.blob (digest) where store is null;
create index blob_stored on stampd.blob (store, digest) where store is not null;
grant select, insert, update, delete on stampd.blob to stampd;

create table stampd.blob_ref (
  class  text collate "C" not null,
  id     text collate "C" not null,
  key    text collate "C" not null,
  digest bytea not null,
  mime   text not null,
  ended  bigint,
  primary key (class, id, key, digest)
);
comment on table stampd.blob_ref is 'A file that an item P has, or had until a short time ago.';
comment on column stampd.blob_ref.ended is 'Stamp at which the item was removed or got another file; null: it has it.';
create index blob_ref_digest on stampd.blob_ref (digest);
create index blob_ref_ended on stampd.blob_ref (ended) where ended is not null;
grant select, insert, update, delete on stampd.blob_ref to stampd;

create table stampd.blob_claim (
  digest  bytea not null,
  account text collate "C" not null,
  until   bigint not null,
  primary key (digest, account)
);
comment on table stampd.blob_claim is 'An account that may attach a file by its digest, because it has uploaded it.';
create index blob_claim_until on stampd.blob_claim (until);
grant select, insert, update, delete on stampd.blob_claim to stampd;

-- --- uploads ---

create function stampd.blob_touch(of_digest text, of_size bigint) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  insert into blob as b (digest, size, touched) values (decode(of_digest, 'hex'), of_size, stamp_now())
    on conflict (digest) do update set touched = greatest(b.touched, excluded.touched), removing = false where b.size = excluded.size;
  if not found then
    raise exception 'the file % is registered with another size', of_digest using errcode = '22000';
  end if;
end $$;
comment on function stampd.blob_touch(text, bigint) is
  'Registers a file before it gets its digest in the store; waits for a cleaner that is removing it.';

create function stampd.blob_claim(of_digest text, of_account text, seconds bigint) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  perform from blob b where b.digest = decode(of_digest, 'hex') and not b.removing for key share;
  if not found then
    return false;
  end if;
  insert into blob_claim as c (digest, account, until)
    values (decode(of_digest, 'hex'), of_account, stamp_of(now() + make_interval(secs => seconds)))
    on conflict (digest, account) do update set until = greatest(c.until, excluded.until);
  return true;
end $$;
comment on function stampd.blob_claim(text, text, bigint) is
  'The account may attach the file for so long; false: there is no such file, or it is being removed.';

-- --- references ---

create function stampd.blob_follow() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
declare
  was   constant bytea := case when tg_op <> 'INSERT' and old.content is not null then decode(export_object(old.content) ->> 'sha', 'hex') end;
  given constant json := case when tg_op <> 'DELETE' and new.content is not null then export_object(new.content) end;
  has   constant bytea := decode(given ->> 'sha', 'hex');
begin
  if was is distinct from has and was is not null then
    update blob_ref r set ended = stamp_now()
      where r.class = old.class and r.id = old.id and r.key = old.key and r.digest = was and r.ended is null;
  end if;
  if given is null then
    return null;
  end if;
  if was is distinct from has then
    perform from blob b where b.digest = has and b.size = (given ->> 'size')::bigint and not b.removing for key share;
    if not found then
      perform fail('ST029', json_build_array(coalesce(encode(has, 'hex'), ''))::text);
    end if;
  end if;
  insert into blob_ref as r (class, id, key, digest, mime) values (new.class, new.id, new.key, has, given ->> 'mime')
    on conflict (class, id, key, digest) do update set ended = null, mime = excluded.mime
      where r.ended is not null or r.mime <> excluded.mime;
  return null;
end $$;
comment on function stampd.blob_follow() is
  'Trigger on items P: keeps blob_ref.  ST029: the store does not have the file, or is about to remove it.';
create trigger blob_given after insert or update on stampd.item
  for each row when (new.iclass = 'P') execute function stampd.blob_follow();
create trigger blob_taken after delete on stampd.item
  for each row when (old.iclass = 'P') execute function stampd.blob_follow();

-- --- the cleaner (src/serve/upkeep/cleaner.h) ---

create function stampd.blob_is_used(of_digest bytea) returns boolean language sql stable as $$
  select exists (select from stampd.blob_ref r where r.digest = of_digest)
    or exists (select from stampd.blob_claim c where c.digest = of_digest)
$$;
comment on function stampd.blob_is_used(bytea) is 'Does anything refer to the file, or may an account attach it?';

create function stampd.blob_mark(shelf int, batch int, age_s bigint) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  least   constant bytea := set_byte('\x00', 0, shelf);
  most    constant bytea := least || decode(repeat('ff', 32), 'hex');
  before  constant bigint := stamp_of(now() - make_interval(secs => age_s));
  digests bytea[];
  marked  bigint;
begin
  -- A transaction that is about to refer to one of them holds its row; earlier references are visible to the statement after this one.
  select array_agg(l.digest) into digests from (
    select b.digest from blob b where b.digest >= least and b.digest <= most and not b.removing and b.touched < before
      and not blob_is_used(b.digest) order by b.digest limit batch for update skip locked) l;
  update blob b set removing = true where b.digest = any (digests) and not blob_is_used(b.digest);
  get diagnostics marked = row_count;
  return marked;
end $$;
comment on function stampd.blob_mark(int, int, bigint) is
  'Marks up to `batch` files whose digest begins with the byte `shelf`, that nothing refers to, and that were uploaded so long ago.  '
  'Returns how many.';

create function stampd.blob_take(batch int) returns setof text
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  digests bytea[];
begin
  select array_agg(l.digest) into digests from (
    select b.digest from blob b where b.removing and b.store is null order by b.digest limit batch for update skip locked) l;
  update blob b set removing = false where b.digest = any (digests) and blob_is_used(b.digest);
  return query select encode(b.digest, 'hex') from blob b where b.digest = any (digests) and b.removing order by b.digest;
end $$;
comment on function stampd.blob_take(int) is
  'Locks up to `batch` marked files until the end of the transaction, which removes them from the store, and returns their digests.  '
  'One that something refers to, which no program of the server does, is unmarked.  One that an object store has waits for the mover.';

create function stampd.blob_forget(digests text[]) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  forgotten bigint;
begin
  delete from blob b using unnest(digests) d(digest) where b.digest = decode(d.digest, 'hex') and b.removing;
  get diagnostics forgotten = row_count;
  return forgotten;
end $$;
comment on function stampd.blob_forget(text[]) is 'Deletes the rows of files that blob_take has locked, and that are removed.  Returns how many.';

create function stampd.blob_note(digests text[], sizes bigint[]) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  noted bigint;
begin
  insert into blob (digest, size, touched, removing)
    select f.digest, f.size, stamp_now(), true
      from (select decode(u.digest, 'hex') as digest, u.size from unnest(digests, sizes) u(digest, size)) f
      where not exists (select from blob b where b.digest = f.digest) order by f.digest
    on conflict (digest) do nothing;
  get diagnostics noted = row_count;
  return noted;
end $$;
comment on function stampd.blob_note(text[], bigint[]) is
  'Registers files that the store has and that have no row, marked: an upload of the same bytes takes them back.  Returns how many.';

create function stampd.purge_references(older_than_stamp bigint, batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  purged bigint;
  more   bigint;
begin
  delete from blob_ref r using (select n.class, n.id, n.key, n.digest from blob_ref n where n.ended < older_than_stamp
      order by n.ended limit batch for update skip locked) o
    where r.class = o.class and r.id = o.id and r.key = o.key and r.digest = o.digest and r.ended < older_than_stamp;
  get diagnostics purged = row_count;
  delete from blob_claim c using (select n.digest, n.account from blob_claim n where n.until < stamp_now()
      order by n.until limit batch - purged for update skip locked) o
    where c.digest = o.digest and c.account = o.account and c.until < stamp_now();
  get diagnostics more = row_count;
  return purged + more;
end $$;
comment on function stampd.purge_references(bigint, int) is
  'Deletes references to files that ended before the stamp, and claims that have ended.  Returns how many; call again until 0.';

-- --- object stores (src/serve/upkeep/mover.h, doc/reference/object-stores.md) ---
--
-- A file that is uploaded lies in the directory.  The mover copies it to the store of the namespace, reads the copy back, and only then
-- notes it in the row of the file; later the directory may lose it.  The name of an object is used once: so whoever removes one that is no
-- longer noted, however late, removes no other copy.

create table stampd.blob_place (
  one   boolean primary key default true check (one),
  store text collate "C" not null default ''
);
comment on table stampd.blob_place is 'Where the files of the namespace belong.';
comment on column stampd.blob_place.store is 'Name of an object store of the site; empty: the directory.';
insert into stampd.blob_place default values;
grant select on stampd.blob_place to stampd;

create table stampd.blob_left (
  store  text collate "C" not null,
  object text collate "C" not null,
  since  bigint not null,
  primary key (store, object)
);
comment on table stampd.blob_left is 'Objects to be removed: no file is read from them, or not yet.';
create index blob_left_since on stampd.blob_left (since);
grant select, insert, update, delete on stampd.blob_left to stampd;

create function stampd.blob_place_set(of_store text) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  update blob_place p set store = of_store where p.one;
end $$;
comment on function stampd.blob_place_set(text) is
  'From now on the files of the namespace belong in this object store; empty: in the directory.  The mover of the server moves them.';

create function stampd.blob_place_counts() returns table (store text, files bigint, bytes bigint)
  language sql stable set search_path = stampd, pg_temp as $$
  select coalesce(b.store, ''), count(*), coalesce(sum(b.size), 0)::bigint from blob b group by 1 order by 1
$$;
comment on function stampd.blob_place_counts() is 'How many files each object store has, and the directory, which is ''''.';

create function stampd.blob_to_send(last text, batch int) returns table (digest text, size bigint, store text, object text)
  language sql stable set search_path = stampd, pg_temp as $$
  select encode(b.digest, 'hex'), b.size, p.store, '' from blob_place p cross join blob b
    where p.store <> '' and b.store is null and not b.removing and b.digest > decode(last, 'hex') order by b.digest limit batch
$$;
comment on function stampd.blob_to_send(text, int) is
  'Files of the directory that belong in an object store, and which, in the order of their digests, after this one.';

create function stampd.blob_to_bring(last text, batch int) returns table (digest text, size bigint, store text, object text)
  language sql stable set search_path = stampd, pg_temp as $$
  select encode(f.digest, 'hex'), f.size, f.store, f.object from (
    select b.* from blob_place p cross join blob b where b.store is not null and b.store < p.store and not b.removing
    union all
    select b.* from blob_place p cross join blob b where b.store is not null and b.store > p.store and not b.removing) f
    where f.digest > decode(last, 'hex') order by f.digest limit batch
$$;
comment on function stampd.blob_to_bring(text, int) is
  'Files of object stores in which they do not belong any more, in the order of their digests, after this one.';

create function stampd.blob_object_begin(of_store text, of_object text) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  insert into blob_left (store, object, since) values (of_store, of_object, stamp_now())
$$;
comment on function stampd.blob_object_begin(text, text) is 'Before an object is written: if it is not noted, it is removed.';

create function stampd.blob_object_note(of_digest text, of_store text, of_object text, of_head text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  update blob b set store = of_store, object = of_object, head = decode(nullif(of_head, ''), 'hex')
    where b.digest = decode(of_digest, 'hex') and b.store is null and not b.removing
      and exists (select from blob_left l where l.store = of_store and l.object = of_object);
  if not found then
    return false;
  end if;
  delete from blob_left l where l.store = of_store and l.object = of_object;
  if not found then
    raise exception 'the object is being removed' using errcode = '40001';
  end if;
  return true;
end $$;
comment on function stampd.blob_object_note(text, text, text, text) is
  'The object is whole and checked: it has the file from now on.  False: the file is being removed, or has one already.';

create function stampd.blob_object_release(of_digest text, of_object text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  from_store text;
begin
  select b.store into from_store from blob b where b.digest = decode(of_digest, 'hex') and b.object = of_object for update;
  if from_store is null then
    return false;
  end if;
  insert into blob_left (store, object, since) values (from_store, of_object, stamp_now());
  update blob b set store = null, object = null, head = null where b.digest = decode(of_digest, 'hex');
  return true;
end $$;
comment on function stampd.blob_object_release(text, text) is
  'The directory has the file again, durably: its object is removed after a time.  False: the file has another object, or none.';

create function stampd.blob_objects_release(batch int) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  digests  bytea[];
  released bigint;
begin
  -- An upload waits for these rows, or has unmarked them: what refers to one of them is visible to the next statement.
  select array_agg(l.digest) into digests from (
    select b.digest from blob b where b.removing and b.store is not null order by b.digest limit batch for update skip locked) l;
  update blob b set removing = false where b.digest = any (digests) and blob_is_used(b.digest);
  insert into blob_left (store, object, since)
    select b.store, b.object, stamp_now() from blob b where b.digest = any (digests) and b.removing;
  update blob b set store = null, object = null, head = null where b.digest = any (digests) and b.removing;
  get diagnostics released = row_count;
  return released;
end $$;
comment on function stampd.blob_objects_release(int) is
  'Gives up the objects of up to `batch` files that the cleaner has marked, which then removes them.  Returns how many.';

create function stampd.blob_objects_left(age_s bigint, batch int) returns table (store text, object text)
  language sql volatile set search_path = stampd, pg_temp as $$
  select l.store, l.object from stampd.blob_left l where l.since < stamp_of(now() - make_interval(secs => age_s)) order by l.since limit batch
$$;
comment on function stampd.blob_objects_left(bigint, int) is 'Objects to be removed, since so many seconds.';

create function stampd.blob_objects_forget(of_store text, of_object text) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  delete from blob_left l where l.store = of_store and l.object = of_object
$$;
comment on function stampd.blob_objects_forget(text, text) is 'The object is removed.';

create function stampd.blob_away(digests text[]) returns setof text
  language sql stable set search_path = stampd, pg_temp as $$
  select d.digest from unnest(digests) d(digest) where exists (
    select from blob b where b.digest = decode(d.digest, 'hex') and b.store is not null and not b.removing)
$$;
comment on function stampd.blob_away(text[]) is 'Those of the files that an object store has.';

create function stampd.blob_lock_away(of_digest text) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  perform from blob b where b.digest = decode(of_digest, 'hex') and b.store is not null for update;
  return found;
end $$;
comment on function stampd.blob_lock_away(text) is
  'Has an object store the file?  Then it has it until the end of the transaction, in which the directory may lose it.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.blob_place_counts(), stampd.blob_to_send(text, int), stampd.blob_to_bring(text, int), stampd.blob_object_begin(text, text),
  stampd.blob_object_note(text, text, text, text), stampd.blob_object_release(text, text), stampd.blob_objects_release(int),
  stampd.blob_objects_left(bigint, int), stampd.blob_objects_forget(text, text), stampd.blob_away(text[]), stampd.blob_lock_away(text) to stampd;
grant execute on function stampd.blob_is_used(bytea), stampd.blob_mark(int, int, bigint), stampd.blob_take(int), stampd.blob_forget(text[]),
  stampd.blob_note(text[], bigint[]) to stampd;
grant execute on function stampd.blob_touch(text, bigint), stampd.blob_claim(text, text, bigint), stampd.blob_follow() to stampd;
