-- A list gives a collection as many values as it has elements, and each is a row.  How many a document may have is a setting of the
-- server, limit_collection_values, which its sessions pass in stampd.collection_values; sessions of administrators have no limit.

create or replace function stampd.member_write(of_class text, ids text[], minute bigint default stampd.present_minute()) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  ends_here boolean := ending_write(of_class, ids);
  most      bigint := nullif(current_setting('stampd.collection_values', true), '');
  too_many  json;
  fixed     json;
begin
  with present as materialized (select * from member_values(of_class, ids)
  ), too_long as materialized (
    select count(*) as number from present p group by p.collection, p.id having count(*) > most
  ), stays as (
    insert into member (collection, id, value, version, xid, has_left, until)
      select p.collection, p.id, p.value, p.version, pg_current_xact_id(), false, e.until
        from present p left join ending e on ends_here and e.class = of_class and e.id = p.id
        where not exists (select from too_long)
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
  ) select (select json_build_array('limit_collection_values', most::text, max(l.number)::text) from too_long l having count(*) > 0),
           (select json_build_array(g.name, of_class, g.id, g.value) from gone g where g.is_fixed order by g.name, g.id limit 1)
      into too_many, fixed;
  if too_many is not null then
    perform fail('ST025', too_many::text);
  end if;
  if fixed is not null and coalesce(current_setting('stampd.rewrites', true), '') <> 'on' then
    perform fail('ST009', fixed::text);
  end if;
  perform unique_write(of_class, ids, minute, ends_here);
end $$;
comment on function stampd.member_write(text, text[], bigint) is
  'Brings members of collections, ends and unique values to the contents of documents that were written or deleted; behind all '
  'that writes their items.  ST005: a value is taken.  ST009: a document would leave a collection that is not mutable; the detail is JSON '
  '[collection, class, document, value].  ST025: a document would have more values in a collection than stampd.collection_values; '
  'the detail is JSON [limit, its value, values].';
