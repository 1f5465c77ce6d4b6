-- Encryption at rest: the keys of an encrypted namespace (doc/explanation/encryption.md).
--
-- Servers encrypt and decrypt; the database has the data keys only wrapped by the key of the site, and refuses to store in clear what
-- is encrypted, by whichever program or function.

create table stampd.data_key (
  id      bigint primary key check (id > 0),
  site    text not null,
  wrapped text not null,
  made    timestamptz not null default now()
);
comment on table stampd.data_key is 'Keys of an encrypted namespace; none: it is not encrypted.  What is written gets the last one.';
comment on column stampd.data_key.site is 'Beginning of a digest of the site key under which the key is wrapped.';
comment on column stampd.data_key.wrapped is 'The key, encrypted under the site key.';
grant select on stampd.data_key to stampd;

create table stampd.encrypted_id (
  class text collate "C" primary key check (class ~ '^[A-Z][A-Za-z0-9]{0,15}$' and class <> 'Account')
);
comment on table stampd.encrypted_id is
  'Classes whose ids are encrypted too, since the namespace was made.  Never change it: servers would take stored ids for those of documents.';
grant select on stampd.encrypted_id to stampd;

create function stampd.id_is_encrypted(class text, id text, classes text[]) returns boolean language sql immutable parallel safe as $$
  select class <> all (classes) or id ~ '^~[A-Za-z0-9_-]{23,}$'
$$;
comment on function stampd.id_is_encrypted(text, text, text[]) is
  'Is the id what servers make of one of these classes?  True for all others.';

create function stampd.encrypt_ids(of_classes text[]) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  held   text;
  listed constant text := quote_literal(of_classes::text) || '::text[]';
begin
  insert into encrypted_id (class) select distinct c.class from unnest(of_classes) c(class);
  -- Rows of member and unique_value have ids of rows of doc.
  foreach held in array array['doc', 'item', 'expiry', 'blob_ref', 'thumbnail_done'] loop
    execute format('alter table %I add constraint encrypted_ids check (stampd.id_is_encrypted(class, id, %s))', held, listed);
  end loop;
  execute format('alter table thumbnail_sweep add constraint encrypted_ids check (id = %L or stampd.id_is_encrypted(class, id, %s))',
                 '', listed);
  execute format('alter table schema_fill add constraint encrypted_ids check (after = %L or stampd.id_is_encrypted(class, after, %s))',
                 '', listed);
  execute format('alter table subscription_definition add constraint encrypted_ids check (not starts_with(key, %L) or '
                 'stampd.id_is_encrypted(split_part(substr(key, 2), %L, 1), substr(key, strpos(key, %L) + 2), %s))',
                 'd', '/@', '/@', listed);
end $$;
comment on function stampd.encrypt_ids(text[]) is 'From now on the ids of these classes are encrypted; the namespace is empty.';

create function stampd.data_key_add(of_id bigint, of_site text, given text, id_classes text[] default '{}') returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  refused text;
begin
  if exists (select from data_key where id >= of_id) or of_id <> coalesce((select max(id) from data_key), 0) + 1 then
    return false;
  end if;
  if of_id = 1 then
    if exists (select from doc) or exists (select from taskqueue) or exists (select from idempotency)
       or exists (select from subscription) or exists (select from blob)
       or exists (select from schema where number > 0) then
      raise exception 'a namespace is encrypted from its creation' using errcode = '55000';
    end if;
    -- Null is not refused by a constraint.  Each statement prepares those of its table: they are kept short.
    alter table item add constraint encrypted_namespace check (content like '~%');
    alter table taskqueue add constraint encrypted_namespace
      check ((param like '~%' or (cron is not null and param = '{}') or (opname = 'push' and param = '{"session":"' || resource || '"}'))
             and checkpoint like '~%');
    alter table task_history add constraint encrypted_namespace
      check (param like '~%' and result like '~%');
    alter table cron add constraint encrypted_namespace check (param = '{}');
    alter table idempotency add constraint encrypted_namespace
      check (substring(answer for 1) = '~'::bytea and versions_after like '~%');
    alter table subscription_definition add constraint encrypted_namespace check (def like '~%');
    alter table subscription add constraint encrypted_namespace
      check (endpoint like '~%' and p256dh like '~%' and auth like '~%' and context like '~%' and credential like '~%');
    alter table blob_ref add constraint encrypted_namespace check (mime like '~%');
    -- Other namespaces have other keys, so the hashes of a value differ.
    alter table unique_property add constraint encrypted_namespace check (not is_global);
    -- What the database would have to read contents for.
    foreach refused in array array['copy_due', 'owner_property', 'sight_place'] loop
      execute format('alter table %I add constraint encrypted_namespace check (false)', refused);
    end loop;
    if id_classes <> '{}' then
      perform encrypt_ids(id_classes);
    end if;
  elsif id_classes <> '{}' then
    raise exception 'ids are encrypted from the creation of a namespace' using errcode = '55000';
  end if;
  insert into data_key (id, site, wrapped) values (of_id, of_site, given);
  -- Servers read the keys again with the schema.
  update schema set number = number + 1 where one and of_id > 1;
  return true;
end $$;
comment on function stampd.data_key_add(bigint, text, text, text[]) is
  'Adds a wrapped data key under the next id; false: there is one already.  The first encrypts the namespace, which must be empty, and '
  'the ids of these classes.';
revoke execute on function stampd.data_key_add(bigint, text, text, text[]), stampd.encrypt_ids(text[]),
  stampd.id_is_encrypted(text, text, text[]) from public;
grant execute on function stampd.id_is_encrypted(text, text, text[]) to stampd;
