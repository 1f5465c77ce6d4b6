-- Fields of any name.
--
-- In the functions that keep side tables a column named `ids` or `keys` hid the parameter of that name, and a list named
-- `pkey` wanted the name of an index.  Parameters are $1 and $2 now, and the indexes have names that no field can want.

do $$
declare
  one record;
begin
  for one in select p.oid from pg_catalog.pg_proc p
      where p.pronamespace = 'stampd'::regnamespace and p.proname ~ '^x_[A-Z][A-Za-z0-9]*_[A-Z][A-Za-z0-9]*_(write|wipe)$' loop
    execute replace(replace(pg_get_functiondef(one.oid), 'unnest(ids, keys)', 'unnest($1, $2)'), 'any (ids)', 'any ($1)');
  end loop;

  for one in select c.relname as side, k.relname as index from pg_catalog.pg_class c
      join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisprimary join pg_catalog.pg_class k on k.oid = i.indexrelid
      where c.relnamespace = 'stampd'::regnamespace and c.relkind = 'r' and c.relname ~ '^x_[A-Z][A-Za-z0-9]*_[A-Z]' loop
    execute format('alter index stampd.%I rename to %I', one.index, 'k_' || substr(one.side, 3));
  end loop;

  -- Rows of items that are no more, where they were not found out.
  for one in select c.oid::regclass as side, split_part(c.relname, '_', 2) as class, split_part(c.relname, '_', 3) as iclass
      from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname in ('ids', 'keys') and not a.attisdropped
      where c.relnamespace = 'stampd'::regnamespace and c.relkind = 'r' and c.relname ~ '^x_[A-Z][A-Za-z0-9]*_[A-Z][A-Za-z0-9]*$' loop
    execute format('select stampd.%I(array_agg(x.id), array_agg(x.key)) from %s x where not exists (select from stampd.item i
      where i.class = %L and i.id = x.id and i.iclass = %L and i.key = x.key and i.content is not null and not i.raw) having count(*) > 0',
      'x_' || one.class || '_' || one.iclass || '_write', one.side, one.class, one.iclass);
  end loop;
end $$;
