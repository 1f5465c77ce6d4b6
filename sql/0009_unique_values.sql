-- Unique values, of any length, of the properties that are declared unique.

create table stampd.unique_value (
  property bigint not null,
  value    text collate "C" not null,
  id       text collate "C" not null,
  primary key (property, value)
);
-- Its condition is always true: it keeps the index from look-ups by value (see member_changed).
create index unique_value_id on stampd.unique_value (property, id) where id is not null;
comment on table stampd.unique_value is 'Values that are taken, and by which document.';
grant select, insert, update, delete on stampd.unique_value to stampd;

create function stampd.unique_release(of_class text, ids text[], minute bigint) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  ended text[];
begin
  select array_agg(l.id) into ended from (
    select e.id from unique_property u join docs_of(of_class, ids) d on d.ctime <> 0
      cross join lateral (select property_joined(of_class, d.id, u.keys) as value offset 0) t
      cross join lateral (select v.id from unique_value v where v.property = u.number and v.value = t.value and v.id <> d.id offset 0) v
      join expiry e on e.class = of_class and e.id = v.id and e.until <= minute
      where u.class = of_class order by e.id for update of e) l;
  if ended is not null then
    delete from unique_value v using unique_property u where u.class = of_class and v.property = u.number and v.id = any (ended);
  end if;
end $$;
comment on function stampd.unique_release(text, text[], bigint) is
  'Frees the unique values that these documents want and that belong to documents which have ended.';

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
        and v.value is distinct from (select property_joined(of_class, d.id, u.keys) from doc d
                                        where d.class = of_class and d.id = v.id and is_alive(d, minute))
      returning u.number, v.value, u.is_global
  ) select jsonb_agg(jsonb_build_array(g.number, g.value)) into let_go from gone g where g.is_global;
  loop
    with fresh as (
      insert into unique_value (property, value, id)
        select t.number, t.value, t.id from (
          select u.number, d.id, property_joined(of_class, d.id, u.keys) as value
            from unique_property u join docs_of(of_class, ids) d on is_alive(d, minute)
            where u.class = of_class
        ) t where t.value is not null order by t.number, t.value, t.id
        on conflict (property, value) do nothing returning property, value
    ) select coalesce(held, '[]') || coalesce(jsonb_agg(jsonb_build_array(f.property, f.value)), '[]') into held
        from fresh f join unique_property u on u.number = f.property and u.is_global;
    -- A later transaction has waited for the first; this statement sees what that one left.
    select json_build_array(u.name, of_class, t.id, rtrim(t.value), v.id) into twice from unique_property u
      join docs_of(of_class, ids) d on is_alive(d, minute)
      cross join lateral (select d.id, property_joined(of_class, d.id, u.keys) as value offset 0) t
      cross join lateral (select v.id from unique_value v where v.property = u.number and v.value = t.value and v.id <> t.id offset 0) v
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

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.unique_release(text, text[], bigint),
  stampd.unique_write(text, text[], bigint, boolean) to stampd;
