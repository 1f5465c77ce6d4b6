-- Contents of older releases become those of the newest: by rules of the schema, which change nothing in a content that is of the
-- newest release.  Workers do the same as they read, until all documents of a class are rewritten; contents that are put by SQL are
-- brought to the newest release too.

-- --- the rules ---

create function stampd.mutate_rules(of_class text, of_iclass text) returns json
  language sql stable set search_path = stampd, pg_temp as $$
  select json_agg(r.value order by r.n) from schema s
    cross join json_array_elements(s.content::json #> array['classes', of_class, 'mutations']) with ordinality r(value, n)
    where s.one and r.value ->> 'item' = of_iclass
$$;
comment on function stampd.mutate_rules(text, text) is 'The rules for the contents of a class of items; null: there are none.';

create function stampd.mutate_content(rules json, content text) returns text language plpgsql immutable parallel safe as $$
declare
  names      text[];
  texts      text[];
  rule       json;
  change     record;
  index      int;
  is_changed boolean := false;
begin
  if json_typeof(content::json) <> 'object' then
    return content;
  end if;
  select coalesce(array_agg(m.key order by m.n), '{}'), coalesce(array_agg(m.value::text order by m.n), '{}')
    into names, texts from json_each(content::json) with ordinality m(key, value, n);
  for rule in select r.value from json_array_elements(rules) with ordinality r(value, n) order by r.n loop
    for change in select r.key, r.value #>> '{}' as name from json_each(coalesce(rule -> 'rename', '{}')) with ordinality r(key, value, n) order by r.n loop
      index := array_position(names, change.key);
      if index is null then
        continue;
      elsif array_position(names, change.name) is null then
        names[index] := change.name;
      else -- of two the newer one stays
        names := names[:index - 1] || names[index + 1:];
        texts := texts[:index - 1] || texts[index + 1:];
      end if;
      is_changed := true;
    end loop;
    for change in select r.key, r.value::text as value from json_each(coalesce(rule -> 'default', '{}')) with ordinality r(key, value, n) order by r.n loop
      if array_position(names, change.key) is null then
        names := names || change.key;
        texts := texts || change.value;
        is_changed := true;
      end if;
    end loop;
    for change in select r.value as key from json_array_elements_text(coalesce(rule -> 'drop', '[]')) r(value) loop
      index := array_position(names, change.key);
      if index is not null then
        names := names[:index - 1] || names[index + 1:];
        texts := texts[:index - 1] || texts[index + 1:];
        is_changed := true;
      end if;
    end loop;
  end loop;
  if not is_changed then
    return content;
  end if;
  return (select '{' || coalesce(string_agg(to_json(m.name)::text || ':' || m.value, ',' order by m.n), '') || '}'
            from unnest(names, texts) with ordinality m(name, value, n));
end $$;
comment on function stampd.mutate_content(json, text) is
  'A content in the newest release: the rules, in their order, rename, give and drop members of the object.';

-- --- rewriting a class ---

create function stampd.mutate_documents(of_class text, batch int default 200) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set jit = off set stampd.rewrites = 'on' as $$
#variable_conflict use_column
declare
  rules    constant json := (select s.content::json #> array['classes', of_class, 'mutations'] from schema s where s.one);
  ids      constant text[] := fill_next(of_class, '~', batch, true);
  held     doc;
  old      record;
  changed  bigint;
begin
  for held in select d.* from doc d where d.class = of_class and d.id = any (ids) order by d.id loop
    changed := null;
    for old in
        select i.iclass, i.key, i.content, m.content as mutated from item i
          cross join lateral (select mutate_content(
            (select json_agg(r.value order by r.n) from json_array_elements(rules) with ordinality r(value, n) where r.value ->> 'item' = i.iclass),
            i.content) as content) m
          where i.class = of_class and i.id = held.id and i.content is not null and not i.raw
            and m.content is distinct from i.content and m.content is not null loop
      changed := coalesce(changed, version_above(held.version));
      -- Not vop: readers have seen it like this since the release, and a copy still waits for what is newer.
      update item i set content = old.mutated, version = changed
        where i.class = of_class and i.id = held.id and i.iclass = old.iclass and i.key = old.key;
    end loop;
    if changed is not null then
      update doc d set version = changed, v1 = (
          select coalesce(sum(octet_length(i.key) + octet_length(i.content)), 0) from item i
            where i.class = of_class and i.id = held.id and i.content is not null)
        where d.class = of_class and d.id = held.id;
      perform export_items(of_class, held.id, changed);
    end if;
  end loop;
  return coalesce(cardinality(ids), 0);
end $$;
comment on function stampd.mutate_documents(text, int) is
  'Rewrites the next documents of a class in its newest release; stampctl schema apply calls it until it returns 0.';

create function stampd.mutate_items(of_class text, batch int) returns table (id text, iclass text, key text, content text, counted bigint)
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  ids constant text[] := fill_next(of_class, '~', batch, true);
begin
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
    -- Not vop: readers have seen it like this since the release, and a copy still waits for what is newer.
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

revoke execute on all functions in schema stampd from public;
