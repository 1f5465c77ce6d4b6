-- Values of any length can be found: what stands for a long one in columns, elements and members.

create function stampd.field_text(value text) returns text language sql immutable parallel safe as $$
  select case when octet_length(value) <= 1024 then value
    else convert_from(substring(o.octets for 1024 -
        case when get_byte(o.octets, 1024) & 192 <> 128 then 0 when get_byte(o.octets, 1023) & 192 <> 128 then 1
             when get_byte(o.octets, 1022) & 192 <> 128 then 2 else 3 end), 'UTF8')
      || U&'\+10FFFF' || encode(sha256(o.octets), 'hex') end
    from (select convert_to(value, 'UTF8') as octets) o
$$;
comment on function stampd.field_text(text) is
  'What stands for a string in a column of a side table: itself, or, of more than 1,024 bytes, its first characters of up to 1,024 '
  'bytes, U+10FFFF and its SHA-256 in hexadecimal.  So two are equal when what stands for them is, and a long one compares with a text '
  'of up to 1,024 bytes as it does itself.';

create or replace function stampd.export_string(value json) returns text language sql immutable parallel safe as $$
  select case when json_typeof(value) = 'string' then stampd.field_text(value #>> '{}') end
$$;

create or replace function stampd.property_text(value json) returns text language sql immutable parallel safe as $$
  select stampd.unique_text(value)
$$;
comment on function stampd.property_text(json) is
  'What stands for a value under which a document is a member: of a string its characters, of a number or a truth value how it is '
  'written, of more than 255 bytes a hash, as of unique values; null: it has none.';

comment on column stampd.member.value is
  'Value of the property, of more than 255 bytes a hash of it; joined from several: octets, a colon, the value, each.';

revoke execute on function stampd.field_text(text) from public;
grant execute on function stampd.field_text(text) to stampd;

-- --- what is there ---

-- Commits wait until this is done: whoever wrote with the functions of before is seen here, whoever comes behind has the new ones.
lock table stampd.doc in exclusive mode;

do $$
declare
  side      record;
  of_class  text;
  found_ids text[];
  keys      text[];
begin
  for side in select substr(p.proname, 3, length(p.proname) - 8) as name from pg_catalog.pg_proc p
      where p.pronamespace = 'stampd'::regnamespace and p.proname ~ '^x_[A-Za-z0-9]+_[A-Za-z0-9]+_write$' loop
    select array_agg(i.id), array_agg(i.key) into found_ids, keys from stampd.item i
      where i.class = split_part(side.name, '_', 1) and i.iclass = split_part(side.name, '_', 2)
        and octet_length(i.content) > 1024 and not i.raw;
    if found_ids is not null then
      execute format('select stampd.%I($1, $2)', 'x_' || side.name || '_write') using found_ids, keys;
    end if;
  end loop;

  for of_class in select distinct c.class from stampd.collection c loop
    select array_agg(distinct i.id) into found_ids from stampd.item i
      where i.class = of_class and i.key = '' and octet_length(i.content) > 255 and not i.raw;
    insert into stampd.member (collection, id, value, version, xid, has_left, until)
      select v.collection, v.id, v.value, v.version, pg_current_xact_id(), false, e.until
        from stampd.member_values(of_class, found_ids) v
        left join stampd.ending e on e.class = of_class and e.id = v.id
        where octet_length(v.value) > 255
      on conflict (collection, id, value) do nothing;
  end loop;
end $$;
-- --- end ---
