-- How many bytes each account stores: those of the documents that it owns, for a quota of accounts (doc/reference/quotas.md).
--
-- The owner of a document is named by one of its members, which the access rules of the namespace declare.  A worker that obeys such a
-- quota declares these members here; the number of the schema moves, so commits of workers that do not know it are refused and run
-- again.  From then on each commit brings the rows of its documents to what they are now, and the keeper visits those that were there
-- before.  Without a quota all three tables are empty.

create table stampd.owner_property (
  class    text collate "C" primary key,
  property text,
  after    text collate "C" not null default '',
  is_ready boolean not null default false
);
comment on table stampd.owner_property is 'Classes whose owners are counted, and those whose rows are being removed.';
comment on column stampd.owner_property.property is 'The member that names the owner; null: the rows of this class are to be removed.';
comment on column stampd.owner_property.after is 'Id of the last document that the keeper has visited.';
comment on column stampd.owner_property.is_ready is 'It has visited all.';
grant select on stampd.owner_property to stampd;

create table stampd.owned (
  class   text collate "C" not null,
  id      text collate "C" not null,
  account text collate "C" not null,
  bytes   bigint not null,
  primary key (class, id)
);
comment on table stampd.owned is
  'Documents with an owner: whom, and with how many bytes, they count for now.  Written by whoever holds the lock of the document.';
comment on column stampd.owned.bytes is 'Its v1 and v2.';
grant select, insert, update, delete on stampd.owned to stampd;

create table stampd.account_bytes (
  account text collate "C" primary key,
  bytes   bigint not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
comment on table stampd.account_bytes is 'The sum of the rows of owned by account; of an account that owns nothing there is no row.';
grant select, insert, update, delete on stampd.account_bytes to stampd;

-- --- in each commit ---

create function stampd.owner_of(of_class text, of_id text, of_property text) returns text
  language plpgsql stable set search_path = stampd, pg_temp as $$
declare
  owner constant json := property_json(of_class, of_id, of_property);
begin
  return case when json_typeof(owner) = 'string' and octet_length(owner #>> '{}') between 1 and 255 then owner #>> '{}' end;
end $$;
comment on function stampd.owner_of(text, text, text) is 'The account that the member names; null: none, or no name of an account.';

create function stampd.owned_write(classes text[], ids text[], most bigint, caller text) returns int
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off set jit = off as $$
declare
  of_class text[];
  of_id    text[];
  account_of text[];
  bytes_of bigint[];
  changed  record;
  now_has  bigint;
begin
  if not exists (select from owner_property) then
    return 0;
  end if;
  select array_agg(n.class), array_agg(n.id), array_agg(o.account), array_agg(d.v1 + d.v2) into of_class, of_id, account_of, bytes_of
    from (select distinct n.class, n.id from unnest(classes, ids) n(class, id)) n
      join owner_property p on p.class = n.class
      left join doc d on d.class = n.class and d.id = n.id and d.ctime <> 0
      cross join lateral (select case when d.id is not null and p.property is not null then owner_of(n.class, n.id, p.property) end) o(account);
  if of_class is null then
    return 0;
  end if;
  -- One account after the other in the order of their names, in which every commit locks them.
  for changed in
    select s.account, sum(s.bytes)::bigint as bytes from (
      select n.account, n.bytes from unnest(account_of, bytes_of) n(account, bytes) where n.account is not null
      union all
      select o.account, -o.bytes from unnest(of_class, of_id) n(class, id) join owned o on o.class = n.class and o.id = n.id) s
    group by s.account having sum(s.bytes) <> 0 order by s.account collate "C"
  loop
    insert into account_bytes as b (account, bytes) values (changed.account, changed.bytes)
      on conflict (account) do update set bytes = b.bytes + excluded.bytes returning b.bytes into now_has;
    if now_has = 0 then
      delete from account_bytes b where b.account = changed.account;
    elsif most > 0 and changed.bytes > 0 and now_has > most then
      perform fail('ST028', case when changed.account = caller
        then json_build_array('quotas.account.bytes', most::text, now_has::text) else json_build_array('quotas.account.bytes', most::text) end::text);
    end if;
  end loop;
  delete from owned o using unnest(of_class, of_id, account_of) n(class, id, account)
    where o.class = n.class and o.id = n.id and n.account is null;
  insert into owned as o (class, id, account, bytes)
    select n.class, n.id, n.account, n.bytes from unnest(of_class, of_id, account_of, bytes_of) n(class, id, account, bytes)
      where n.account is not null
    on conflict (class, id) do update set account = excluded.account, bytes = excluded.bytes
      where (o.account, o.bytes) <> (excluded.account, excluded.bytes);
  return cardinality(of_class);
end $$;
comment on function stampd.owned_write(text[], text[], bigint, text) is
  'Brings owned and account_bytes to the present state of these documents, whose locks are held; behind all that writes them.  ST028: '
  'an account would have more than `most` bytes (0: no limit), and has more than before; the detail is JSON [quota, its value], and the '
  'sum if the account is that of the caller.';

-- --- what is declared ---

create function stampd.owners_declare(declared text) returns boolean
  language plpgsql volatile security definer set search_path = stampd, pg_temp as $$
begin
  update schema s set owners = declared, number = s.number + 1 where s.one and s.owners <> declared;
  if not found then
    return false;
  end if;
  update owner_property p set property = declared::json ->> p.class, after = '', is_ready = false
    where p.property is distinct from declared::json ->> p.class;
  insert into owner_property (class, property) select n.key, n.value from json_each_text(declared::json) n order by n.key
    on conflict (class) do nothing;
  return true;
end $$;
comment on function stampd.owners_declare(text) is
  'Sets by which members owners are counted: JSON {class: "Item.member"}; false: it was so already.  Commits of workers that do not know '
  'it yet are refused and run again.';

create function stampd.keep_owned(batch int, of_number bigint) returns bigint
  language plpgsql volatile security definer set search_path = stampd, pg_temp as $$
declare
  kind owner_property;
  ids  text[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('stampd owners', 0)) then
    return 0;
  end if;
  -- Locked before the number is compared: a declaration that comes meanwhile waits, and has this class visited from its beginning.
  select * into kind from owner_property p where not p.is_ready order by p.class limit 1 for update;
  if not found or (select number from schema where one) <> of_number then
    return 0;
  end if;
  select array_agg(d.id order by d.id) into ids from (
    select d.id from doc d where d.class = kind.class and d.id > kind.after order by d.id limit batch for no key update) d;
  perform owned_write(array_fill(kind.class, array[coalesce(cardinality(ids), 0)]), coalesce(ids, '{}'), 0, null);
  if ids is not null then
    update owner_property p set after = ids[cardinality(ids)] where p.class = kind.class;
  elsif kind.property is null then
    delete from owner_property p where p.class = kind.class;
  else
    update owner_property p set is_ready = true where p.class = kind.class;
  end if;
  return coalesce(cardinality(ids), 1);
end $$;
comment on function stampd.keep_owned(int, bigint) is
  'Counts up to `batch` documents for their owners that were there before they were declared, as long as the schema has this number; '
  'when no older commit is under way.  Returns how many; call again until 0.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.owner_of(text, text, text), stampd.owned_write(text[], text[], bigint, text), stampd.owners_declare(text),
  stampd.keep_owned(int, bigint) to stampd;
