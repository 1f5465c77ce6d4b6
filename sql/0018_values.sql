-- Unique values of any length, and collections whose documents do not move.

-- --- unique values ---

create function stampd.unique_text(value json) returns text language sql immutable parallel safe as $$
  select case
    when json_typeof(value) not in ('string', 'number', 'boolean') then null
    when octet_length(value #>> '{}') <= 255 then value #>> '{}'
    else rpad(octet_length(value #>> '{}') || ' bytes, sha256 ' || encode(sha256(convert_to(value #>> '{}', 'UTF8')), 'hex'), 256)
  end
$$;
comment on function stampd.unique_text(json) is
  'What stands for a value that is unique: itself as text, or, of more than 255 bytes, a hash of it; that has 256 bytes, so it is no '
  'value itself.  Null: it has none.';

create function stampd.unique_joined(class text, id text, keys text[]) returns text
  language plpgsql stable set search_path = stampd, pg_temp as $$
declare
  value  text;
  joined text := '';
begin
  for place in 1 .. cardinality(keys) loop
    value := unique_text(property_json(class, id, keys[place]));
    if value is null then
      return null;
    end if;
    joined := joined || octet_length(value) || ':' || value;
  end loop;
  return case when cardinality(keys) = 1 then value else joined end;
end $$;
comment on function stampd.unique_joined(text, text, text[]) is
  'What no other document may have; null when a property has no value.';

create or replace function stampd.unique_release(of_class text, ids text[], minute bigint) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  ended text[];
begin
  select array_agg(l.id) into ended from (
    select e.id from unique_property u join doc d on d.class = of_class and d.id = any (ids) and d.ctime <> 0
      cross join lateral (select unique_joined(of_class, d.id, u.keys) as value) t
      join unique_value v on v.property = u.number and v.value = t.value and v.id <> d.id
      join ending e on e.class = of_class and e.id = v.id and e.until <= minute
      where u.class = of_class order by e.id for update of e) l;
  if ended is not null then
    delete from unique_value v using unique_property u where u.class = of_class and v.property = u.number and v.id = any (ended);
  end if;
end $$;

create function stampd.unique_write(of_class text, ids text[], minute bigint, ends_here boolean) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  twice  json;
  held   jsonb; -- values that are unique in all namespaces, and are taken here by this
  let_go jsonb; -- or given up
begin
  if not exists (select from unique_property u where u.class = of_class) then
    return;
  end if;
  with gone as (
    delete from unique_value v using unique_property u
      where u.class = of_class and v.property = u.number and v.id = any (ids)
        and v.value is distinct from (select unique_joined(of_class, d.id, u.keys) from doc d
                                        where d.class = of_class and d.id = v.id and is_alive(d, minute))
      returning u.number, v.value, u.is_global
  ) select jsonb_agg(jsonb_build_array(g.number, g.value)) into let_go from gone g where g.is_global;
  loop
    with fresh as (
      insert into unique_value (property, value, id)
        select t.number, t.value, t.id from (
          select u.number, d.id, unique_joined(of_class, d.id, u.keys) as value
            from unique_property u join doc d on d.class = of_class and d.id = any (ids) and is_alive(d, minute)
            where u.class = of_class
        ) t where t.value is not null order by t.number, t.value, t.id
        on conflict (property, value) do nothing returning property, value
    ) select coalesce(held, '[]') || coalesce(jsonb_agg(jsonb_build_array(f.property, f.value)), '[]') into held
        from fresh f join unique_property u on u.number = f.property and u.is_global;
    -- Who came later has waited for the first; this statement sees what that one left.
    select json_build_array(u.name, of_class, t.id, rtrim(t.value), v.id) into twice from unique_property u
      join doc d on d.class = of_class and d.id = any (ids) and is_alive(d, minute)
      cross join lateral (select d.id, unique_joined(of_class, d.id, u.keys) as value) t
      join unique_value v on v.property = u.number and v.value = t.value and v.id <> t.id
      where u.class = of_class limit 1;
    exit when not found;
    if not ends_here then
      perform fail('ST005', twice::text);
    end if;
    perform unique_release(of_class, ids, minute); -- and once more
    ends_here := false;
  end loop;
  if held <> '[]' or let_go is not null then
    perform global_note(held, let_go);
  end if;
end $$;
comment on function stampd.unique_write(text, text[], bigint, boolean) is
  'Brings unique values to the contents of documents.  ST005: a value is taken; the detail is JSON [property, class, document, value, '
  'document that has it].';

create function stampd.purge_values(batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  purged bigint;
begin
  delete from unique_value v where (v.property, v.value) in (
    select o.property, o.value from unique_value o
      where not exists (select from unique_property u where u.number = o.property) limit batch);
  get diagnostics purged = row_count;
  return purged;
end $$;
comment on function stampd.purge_values(int) is
  'Deletes up to `batch` unique values of declarations that are no more.  Returns how many; call again until it returns 0.';

-- --- collections that are not mutable ---

alter table stampd.collection add column is_mutable boolean not null default true;
comment on column stampd.collection.is_mutable is 'Documents that live on may leave it; else their commit is refused.';

create or replace function stampd.follow_schema() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  create temp table declared on commit drop as
    select c.key as class, kind.key as kind, p.key as name, coalesce((p.value ->> 'list')::boolean, false) as is_list,
           coalesce((p.value ->> 'mutable')::boolean, false) as is_mutable, coalesce((p.value ->> 'global')::boolean, false) as is_global,
           array(select json_array_elements_text(p.value -> 'key')) as keys
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

update stampd.collection c set is_mutable = coalesce((s.content::json #>> array['classes', c.class, 'collections', c.name, 'mutable'])::boolean, false)
  from stampd.schema s where s.one;

-- --- both ---

create or replace function stampd.member_write(of_class text, ids text[], minute bigint default stampd.present_minute()) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  ends_here boolean := ending_write(of_class, ids);
  fixed     json;
begin
  with present as materialized (select * from member_values(of_class, ids)
  ), stays as (
    insert into member (collection, id, value, version, xid, has_left, until)
      select p.collection, p.id, p.value, p.version, pg_current_xact_id(), false, e.until
        from present p left join ending e on ends_here and e.class = of_class and e.id = p.id
      on conflict (collection, id, value) do update
        set version = excluded.version, xid = excluded.xid, has_left = false, until = excluded.until
  ), gone as (
    update member m set has_left = true, version = d.version, xid = pg_current_xact_id(), until = null
      from collection c, doc d
      where c.class = of_class and m.collection = c.number and m.id = any (ids) and not m.has_left
        and d.class = of_class and d.id = m.id
        and not exists (select from present p where p.collection = m.collection and p.id = m.id and p.value = m.value)
      -- It lives on: neither deleted nor born by this commit.
      returning not c.is_mutable and d.ctime <> 0 and d.ctime < d.version as is_fixed, c.name, m.id, m.value
  ) select json_build_array(g.name, of_class, g.id, g.value) into fixed from gone g where g.is_fixed order by g.name, g.id limit 1;
  if found and coalesce(current_setting('stampd.rewrites', true), '') <> 'on' then
    perform fail('ST009', fixed::text);
  end if;
  perform unique_write(of_class, ids, minute, ends_here);
end $$;
comment on function stampd.member_write(text, text[], bigint) is
  'Brings members of collections, ends and unique values to the contents of documents that were written or deleted; behind all '
  'that writes their items.  ST005: a value is taken.  ST009: a document would leave a collection that is not mutable; the detail is JSON '
  '[collection, class, document, value].';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.unique_text(json), stampd.unique_joined(text, text, text[]), stampd.unique_write(text, text[], bigint, boolean)
  to stampd;
