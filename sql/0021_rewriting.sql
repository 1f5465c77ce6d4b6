-- Releases are obeyed for as long as their rules are declared: what is put by SQL becomes of the newest release, and a rewriting
-- that was begun goes on by itself.

create function stampd.mutate_rules(of_class text, of_iclass text) returns json
  language sql stable set search_path = stampd, pg_temp as $$
  select json_agg(r.value order by r.n) from schema s
    cross join json_array_elements(s.content::json #> array['classes', of_class, 'mutations']) with ordinality r(value, n)
    where s.one and r.value ->> 'item' = of_iclass
$$;
comment on function stampd.mutate_rules(text, text) is 'The rules for the contents of a class of items; null: there are none.';

create or replace function stampd.put_item(class text, id text, iclass text, key text, content text, raw boolean default false)
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

  changed := version_above(coalesce(held.version, (select floor from space where one)));
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

create function stampd.mutate_items(of_class text, batch int) returns table (id text, iclass text, key text, content text, counted bigint)
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  last_id text;
  ids     text[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'documents are changed in READ COMMITTED only' using errcode = '25001';
  end if;
  select f.after into last_id from schema_fill f where f.class = of_class and f.iclass = '~' for update;
  -- Whoever writes an item holds the lock of its document; the items are looked at in a later statement.
  select array_agg(o.id order by o.id) into ids from (
    select d.id from doc d where d.class = of_class and d.id > last_id and d.ctime <> 0
      order by d.id limit batch for no key update) o;
  update schema_fill f set after = ids[cardinality(ids)], done = f.done + cardinality(ids)
    where f.class = of_class and f.iclass = '~' and ids is not null;
  return query select null::text, null::text, null::text, null::text, coalesce(cardinality(ids), 0)::bigint;
  return query select i.id, i.iclass, i.key, i.content, null::bigint from unnest(ids) u(id) cross join lateral (
    select t.id, t.iclass, t.key, t.content from item t
      where t.class = of_class and t.id = u.id and t.content is not null and not t.raw offset 0) i;
end $$;
comment on function stampd.mutate_items(text, int) is
  'Locks the next documents of a class that is being rewritten and returns their contents; how many documents stands in the first row.';

create function stampd.mutate_store(of_class text, ids text[], iclasses text[], keys text[], contents text[]) returns void
  language plpgsql volatile set search_path = stampd, pg_temp set stampd.rewrites = 'on' as $$
#variable_conflict use_column
declare
  held    doc;
  changed bigint;
begin
  for held in select d.* from doc d where d.class = of_class and d.id = any (ids) order by d.id for no key update loop
    changed := version_above(held.version);
    -- Not vop: whoever reads has seen it like this since the release, and a copy still waits for what is newer.
    update item i set content = u.content, version = changed from unnest(ids, iclasses, keys, contents) u(id, iclass, key, content)
      where u.id = held.id and i.class = of_class and i.id = held.id and i.iclass = u.iclass and i.key = u.key;
    update doc d set version = changed, v1 = (
        select coalesce(sum(octet_length(i.key) + octet_length(i.content)), 0) from item i
          where i.class = of_class and i.id = held.id and i.content is not null)
      where d.class = of_class and d.id = held.id;
    perform export_items(of_class, held.id, changed);
  end loop;
end $$;
comment on function stampd.mutate_store(text, text[], text[], text[], text[]) is
  'Writes contents that were mutated, of documents that mutate_items has locked in this transaction.';

create function stampd.mutate_end(of_class text) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  delete from schema_fill f where f.class = of_class and f.iclass = '~';
  if found then
    update schema s set number = s.number + 1,
      building = array_to_string(array_remove(string_to_array(s.building, ' '), '~' || of_class), ' ') where s.one;
  end if;
end $$;
comment on function stampd.mutate_end(text) is 'All documents of the class are of its newest release.';

-- The one of migration 7, which psql may call as well: rules of a collection that is not mutable do not bind the rewriting.
alter function stampd.mutate_documents(text, int) set stampd.rewrites = 'on';

-- The keeper does these with the rights of the owner.
create function stampd.keep_items(of_class text, batch int) returns table (id text, iclass text, key text, content text, counted bigint)
  language sql volatile security definer set search_path = stampd, pg_temp as $$ select * from mutate_items(of_class, batch) $$;
create function stampd.keep_store(of_class text, ids text[], iclasses text[], keys text[], contents text[]) returns void
  language sql volatile security definer set search_path = stampd, pg_temp as $$ select mutate_store(of_class, ids, iclasses, keys, contents) $$;
create function stampd.keep_end(of_class text) returns void
  language sql volatile security definer set search_path = stampd, pg_temp as $$ select mutate_end(of_class) $$;

revoke execute on function stampd.mutate_rules(text, text),
  stampd.mutate_items(text, int), stampd.mutate_store(text, text[], text[], text[], text[]), stampd.mutate_end(text),
  stampd.keep_items(text, int), stampd.keep_store(text, text[], text[], text[], text[]), stampd.keep_end(text) from public;
grant execute on function stampd.keep_items(text, int), stampd.keep_store(text, text[], text[], text[], text[]), stampd.keep_end(text) to stampd;
grant select on stampd.schema_fill to stampd;
