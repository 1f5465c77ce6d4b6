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

create function stampd.data_key_add(of_id bigint, of_site text, given text) returns boolean
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
      check (substring(answer for 1) = '~'::bytea);
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
  end if;
  insert into data_key (id, site, wrapped) values (of_id, of_site, given);
  -- Servers read the keys again with the schema.
  update schema set number = number + 1 where one and of_id > 1;
  return true;
end $$;
comment on function stampd.data_key_add(bigint, text, text) is
  'Adds a wrapped data key under the next id; false: there is one already.  The first encrypts the namespace, which must be empty.';
revoke execute on function stampd.data_key_add(bigint, text, text) from public;
