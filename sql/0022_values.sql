-- What a document has left is found by a table of what it is in: one look for each of its values.  Comparing each with all of them
-- took 13 s for a list of 8,000 values, in every commit of the document.

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
        and (m.collection, m.id, m.value) not in (select p.collection, p.id, p.value from present p)
      -- It lives on: neither deleted nor born by this commit.
      returning not c.is_mutable and d.ctime <> 0 and d.ctime < d.version as is_fixed, c.name, m.id, m.value
  ) select json_build_array(g.name, of_class, g.id, g.value) into fixed from gone g where g.is_fixed order by g.name, g.id limit 1;
  if found and coalesce(current_setting('stampd.rewrites', true), '') <> 'on' then
    perform fail('ST009', fixed::text);
  end if;
  perform unique_write(of_class, ids, minute, ends_here);
end $$;
