-- The declaration of classes that is applied, and what keeps the side tables of exported fields right.

-- --- what is applied ---

create table stampd.schema (
  one      boolean primary key default true check (one),
  number   bigint not null,
  content  text not null,
  building text not null,
  wakes    boolean not null default false,
  owners   text not null default '{}'
);
insert into stampd.schema (number, content, building) values (0, '{"classes":{}}', '');
comment on table stampd.schema is 'Exactly one row: the declaration of classes that is applied here; stampctl schema apply keeps it.';
comment on column stampd.schema.number is
  'Moves with each change of the row.  A commit or a search that was made up under another number is refused (ST004).';
comment on column stampd.schema.content is 'The declaration, JSON.';
comment on column stampd.schema.building is
  'Exported fields that are written but not to be searched yet, Class.Item.field, and indexes that are not complete, Class.Item.field,-field; '
  'separated by blanks.';
comment on column stampd.schema.wakes is
  'Commits create a task `push` for each session that is to be woken; wake_sessions() changes it.';
comment on column stampd.schema.owners is
  'The members that name owners, of classes whose owners are counted: JSON {class: "Item.member"}; owners_declare() changes it.';
grant select on stampd.schema to stampd;

create table stampd.schema_fill (
  class  text collate "C" not null,
  iclass text collate "C" not null,
  after  text collate "C" not null,
  done   bigint not null,
  primary key (class, iclass)
);
comment on table stampd.schema_fill is
  'Side tables that are being filled from the documents that were there before: how far that has come.';
comment on column stampd.schema_fill.after is 'Id of the last document done.';
comment on column stampd.schema_fill.done is 'How many documents are done.';
grant select on stampd.schema_fill to stampd;

-- --- values of exported fields, out of a member of a content ---
-- What is not of the type is null, as if it were not there.

create function stampd.field_text_long(value text) returns text language sql immutable parallel safe as $$
  select convert_from(substring(o.octets for 1024 -
        case when get_byte(o.octets, 1024) & 192 <> 128 then 0 when get_byte(o.octets, 1023) & 192 <> 128 then 1
             when get_byte(o.octets, 1022) & 192 <> 128 then 2 else 3 end), 'UTF8')
      || U&'\+10FFFF' || encode(sha256(o.octets), 'hex')
    from (select convert_to(value, 'UTF8') as octets) o
$$;
comment on function stampd.field_text_long(text) is 'field_text() of a string of more than 1,024 bytes.';
-- An expression, which PostgreSQL puts in place of a call: a list has a thousand elements.
create function stampd.field_text(value text) returns text language sql immutable parallel safe as $$
  select case when octet_length(value) <= 1024 then value else stampd.field_text_long(value) end
$$;
comment on function stampd.field_text(text) is
  'What stands for a string in a column of a side table: itself, or, of more than 1,024 bytes, its first characters of up to 1,024 '
  'bytes, U+10FFFF and its SHA-256 in hexadecimal.  So two are equal when what stands for them is, and a long one compares with a text '
  'of up to 1,024 bytes as it does itself.';

create function stampd.field_folded(value text) returns text language plpgsql immutable parallel safe as $$
begin
  if octet_length(value) = length(value) then
    return stampd.field_text(lower(value collate "C"));
  end if;
  return stampd.field_text(translate(replace(replace(replace(replace(
    normalize(lower(regexp_replace(normalize(value, NFKD), '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]', '', 'g')
      collate "und-x-icu"), NFKC), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'), U&'łøđðħŧıς\+10FFFF', 'loddhtiσ'));
end $$;
comment on function stampd.field_folded(text) is
  'A string without differences of case, accents and compatible forms: what stands for it in a column of type folded.';

create function stampd.export_folded(value json) returns text language sql immutable parallel safe as $$
  select case when json_typeof(value) = 'string' then stampd.field_folded(value #>> '{}') end
$$;
create function stampd.export_string(value json) returns text language sql immutable parallel safe as $$
  select case when json_typeof(value) = 'string' then stampd.field_text(value #>> '{}') end
$$;
create function stampd.export_long(value json) returns bigint language sql immutable parallel safe as $$
  select case when json_typeof(value) = 'number' and value::text ~ '^\s*-?[0-9]{1,19}\s*$'
      and value::text::numeric between -9223372036854775808 and 9223372036854775807 then value::text::bigint end
$$;
create function stampd.export_int(value json) returns int language sql immutable parallel safe as $$
  select case when json_typeof(value) = 'number' and value::text ~ '^\s*-?[0-9]{1,10}\s*$'
      and value::text::bigint between -2147483648 and 2147483647 then value::text::int end
$$;
create function stampd.export_any_double(value text) returns double precision language plpgsql immutable parallel safe as $$
begin
  return value::double precision;
exception when numeric_value_out_of_range then
  return null;
end $$;
create function stampd.export_double(value json) returns double precision language sql immutable parallel safe as $$
  select case when json_typeof(value) <> 'number' then null
    when value::text ~ '^\s*-?[0-9]{1,17}(\.[0-9]{1,17})?\s*$' then value::text::double precision
    else stampd.export_any_double(value::text) end
$$;
-- Elements that are not of the type are left out; what is no list, or one of more than 1000 elements, is null.
create function stampd.export_elements(value json) returns setof json language sql immutable parallel safe as $$
  select e from json_array_elements(case when json_typeof(value) = 'array' then value else '[]' end) e
$$;
create function stampd.export_is_list(value json) returns boolean language sql immutable parallel safe as $$
  select case when json_typeof(value) = 'array' then json_array_length(value) <= 1000 else false end
$$;
create function stampd.export_strings(value json) returns text[] language sql immutable parallel safe as $$
  select case when stampd.export_is_list(value) then array( -- "offset 0": each element is read once
    select stampd.field_text(o.v) from (
      select e #>> '{}' as v from stampd.export_elements(value) e where json_typeof(e) = 'string' offset 0) o) end
$$;
create function stampd.export_foldeds(value json) returns text[] language sql immutable parallel safe as $$
  select case when stampd.export_is_list(value) then array(
    select stampd.field_folded(e #>> '{}') from stampd.export_elements(value) e where json_typeof(e) = 'string') end
$$;
create function stampd.export_longs(value json) returns bigint[] language sql immutable parallel safe as $$
  select case when stampd.export_is_list(value) then array(
    select v from (select stampd.export_long(e) as v from stampd.export_elements(value) e) o where v is not null) end
$$;
create function stampd.export_ints(value json) returns int[] language sql immutable parallel safe as $$
  select case when stampd.export_is_list(value) then array(
    select v from (select stampd.export_int(e) as v from stampd.export_elements(value) e) o where v is not null) end
$$;
create function stampd.export_doubles(value json) returns double precision[] language sql immutable parallel safe as $$
  select case when stampd.export_is_list(value) then array(
    select v from (select stampd.export_double(e) as v from stampd.export_elements(value) e) o where v is not null) end
$$;

create function stampd.export_text(content json, members text[], language regconfig) returns tsvector
  language plpgsql immutable parallel safe as $$
declare
  words tsvector;
  value json;
  found text;
  room  int := 65536; -- characters: their words fit into a tsvector
begin
  for place in 1 .. cardinality(members) loop
    value := content -> members[place];
    if json_typeof(value) = 'array' then
      select string_agg(e #>> '{}', E'\n') into found from json_array_elements(value) e where json_typeof(e) = 'string';
    else
      found := case when json_typeof(value) = 'string' then value #>> '{}' end;
    end if;
    if found is not null then
      found := left(found, room);
      words := coalesce(words, '') || setweight(to_tsvector(language, found), (array['A', 'B', 'C', 'D']::"char"[])[place]);
      room := room - length(found);
    end if;
  end loop;
  return words;
end $$;
comment on function stampd.export_text(json, text[], regconfig) is
  'The words of members that are strings, or lists with strings: of 65,536 characters together.  Null: there is none of them.';

create function stampd.text_query(language regconfig, value text) returns tsquery language plpgsql immutable as $$
declare
  head  constant text := substring(value from '(?:^|\s)([^\s"*-][^\s"*]*)\*\s*$');
  words tsquery;
begin
  value := regexp_replace(value, '-(?=[-\s()!&|]|$)', ' ', 'g');
  words := websearch_to_tsquery(language, case when head is null then value else regexp_replace(value, '[^\s"*]+\*\s*$', '') end);
  if head is not null then
    words := words && to_tsquery(language, '''' || replace(replace(head, '\', '\\'), '''', '''''') || ''':*');
  end if;
  return case when querytree(words) = 'T' then '' else words end;
exception when internal_error then -- nested deeper than PostgreSQL reads
  return '';
end $$;
comment on function stampd.text_query(regconfig, text) is
  'What is searched for: words, "phrases", or, -without, and a last word that ends with * and is a beginning.  Nothing is found by a text '
  'without a word that must be there, for which all would have to be read.';

-- In an encrypted namespace the workers put behind an encrypted content what the database may read of it (src/model/schema/shown.h).
create function stampd.export_object(content text) returns json language sql immutable parallel safe as $$
  select case when starts_with(content, '~')
    then case when strpos(content, '{') > 0 then substr(content, strpos(content, '{'))::json else '{}'::json end
    when json_typeof(content::json) = 'object' then content::json else '{}'::json end
$$;
comment on function stampd.export_object(text) is
  'The content as an object; an empty one when it is none.  Of an encrypted content the members that are shown.';

-- --- values of fields that are members within a member; src/model/schema/schema_paths.c follows the same paths ---
-- Of an encrypted content the value that is shown has the name of the field.

create function stampd.export_at(content text, field text, members text[]) returns json language plpgsql immutable parallel safe as $$
declare
  value  json;
  member text;
begin
  if starts_with(content, '~') then
    return stampd.export_object(content) -> field;
  end if;
  value := content::json;
  foreach member in array members loop
    if json_typeof(value) is distinct from 'object' then
      return null;
    end if;
    value := value -> member;
  end loop;
  return value;
end $$;
comment on function stampd.export_at(text, text, text[]) is
  'The value that these members lead to, from object to object; null: one of them is not there.';

create function stampd.export_each(content text, field text, members text[]) returns json language plpgsql immutable parallel safe as $$
declare
  found    json[];
  has_list boolean := false;
  member   text;
begin
  if starts_with(content, '~') then
    return stampd.export_object(content) -> field;
  end if;
  if json_typeof(content::json) <> 'object' then
    return null;
  end if;
  found := array[content::json];
  foreach member in array members loop
    has_list := has_list or exists (select from unnest(found) f where json_typeof(f) = 'array');
    found := array(select e.value -> member from unnest(found) with ordinality f(value, place) cross join lateral (
        select f.value, 0::bigint as place where json_typeof(f.value) = 'object'
        union all select a.value, a.place from stampd.export_elements(f.value) with ordinality a(value, place)) e
      where json_typeof(e.value) = 'object' and (e.value -> member) is not null order by f.place, e.place);
  end loop;
  if not has_list and not exists (select from unnest(found) f where json_typeof(f) = 'array') then
    return null;
  end if;
  return (select coalesce(json_agg(e.value order by f.place, e.place), '[]') from unnest(found) with ordinality f(value, place) cross join lateral (
      select f.value, 0::bigint as place where has_list and json_typeof(f.value) <> 'array'
      union all select a.value, a.place from stampd.export_elements(f.value) with ordinality a(value, place)) e);
end $$;
comment on function stampd.export_each(text, text, text[]) is
  'The values that these members lead to, as a list, where a list on the way stands for its elements that are objects; null: there is no list.';

-- --- side tables, for administrators' functions ---
-- stampctl schema apply makes, for each side table "x_Class_Item", functions "x_Class_Item_write"(ids, keys), which brings
-- the rows of these items to what their contents are, and "x_Class_Item_wipe"(ids), which removes all of these documents.

create function stampd.export_item(class text, id text, iclass text, key text) returns void
  language plpgsql volatile as $$
begin
  if to_regprocedure(format('stampd.%I(text[],text[])', 'x_' || class || '_' || iclass || '_write')) is not null then
    execute format('select stampd.%I($1, $2)', 'x_' || class || '_' || iclass || '_write') using array[id], array[key];
  end if;
  perform stampd.member_write(class, array[id]);
  perform stampd.owned_write(array[class], array[id], 0, null);
end $$;
comment on function stampd.export_item(text, text, text, text) is
  'Brings side tables and collections of a document to the content of an item; whoever writes one by SQL calls it behind.';

create function stampd.side_wipe(class text, id text) returns void language plpgsql volatile as $$
declare
  wipe record;
begin
  for wipe in select p.proname from pg_catalog.pg_proc p
      where p.pronamespace = 'stampd'::regnamespace and p.proname ~ ('^x_' || class || '_[A-Z][A-Za-z0-9]*_wipe$') loop
    execute format('select stampd.%I($1)', wipe.proname) using array[id];
  end loop;
end $$;
comment on function stampd.side_wipe(text, text) is 'Removes a document from all side tables of its class.';

create function stampd.export_wipe(class text, id text) returns void language plpgsql volatile as $$
begin
  perform stampd.side_wipe(class, id);
  perform stampd.member_write(class, array[id]);
  perform stampd.owned_write(array[class], array[id], 0, null);
end $$;
comment on function stampd.export_wipe(text, text) is 'Removes a document from all side tables and collections of its class.';

create function stampd.export_items(of_class text, of_id text, of_version bigint) returns void language plpgsql volatile as $$
declare
  written record;
begin
  for written in select i.iclass, array_agg(i.key) as keys from stampd.item i
      where i.class = of_class and i.id = of_id and (of_version is null or i.version = of_version) group by i.iclass loop
    if to_regprocedure(format('stampd.%I(text[],text[])', 'x_' || of_class || '_' || written.iclass || '_write')) is not null then
      execute format('select stampd.%I($1, $2)', 'x_' || of_class || '_' || written.iclass || '_write')
        using array_fill(of_id, array[cardinality(written.keys)]), written.keys;
    end if;
  end loop;
  perform stampd.member_write(of_class, array[of_id]);
  perform stampd.owned_write(array[of_class], array[of_id], 0, null);
end $$;
comment on function stampd.export_items(text, text, bigint) is
  'Brings side tables and collections of a document to its items of that version; null: to all of them.';

create function stampd.fill_next(of_class text, of_iclass text, batch int, changes boolean) returns text[]
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set jit = off as $$
declare
  last_id text;
  ids     text[];
begin
  perform check_isolation();
  select f.after into last_id from schema_fill f where f.class = of_class and f.iclass = of_iclass for update;
  -- A writer of an item holds the lock of its document; the items are read in a later statement.
  if changes then
    select array_agg(o.id order by o.id) into ids from (
      select d.id from doc d where d.class = of_class and d.id > last_id and d.ctime <> 0
        order by d.id limit batch for no key update) o;
  else
    select array_agg(o.id order by o.id) into ids from (
      select d.id from doc d where d.class = of_class and d.id > last_id and d.ctime <> 0
        order by d.id limit batch for share) o;
  end if;
  if ids is not null then
    update schema_fill f set after = ids[cardinality(ids)], done = f.done + cardinality(ids)
      where f.class = of_class and f.iclass = of_iclass;
  end if;
  return ids;
end $$;
comment on function stampd.fill_next(text, text, int, boolean) is
  'Locks the next documents of a class that is being filled or, with `changes`, rewritten, and notes in schema_fill that they are done: '
  'their ids; null: there are no more.';

create function stampd.fill_side(class text, iclass text, batch int default 200) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  batch_ids constant text[] := fill_next(class, iclass, batch, false);
  item_ids text[];
  item_keys text[];
begin
  select array_agg(u.id), array_agg(k.key) into item_ids, item_keys
    from unnest(batch_ids) u(id) cross join lateral (
      select i.key from item i where i.class = fill_side.class and i.id = u.id and i.iclass = fill_side.iclass
        and i.content is not null and not i.raw offset 0) k;
  if item_ids is not null then
    execute format('select stampd.%I($1, $2)', 'x_' || fill_side.class || '_' || fill_side.iclass || '_write')
      using item_ids, item_keys;
  end if;
  return coalesce(cardinality(batch_ids), 0);
end $$;
comment on function stampd.fill_side(text, text, int) is
  'Fills a side table from the next documents of its class; stampctl schema apply calls it until it returns 0.';

create function stampd.empty_sides() returns trigger language plpgsql as $$
declare
  side record;
begin
  for side in select c.relname from pg_catalog.pg_class c
      where c.relnamespace = 'stampd'::regnamespace and c.relkind = 'r' and c.relname ~ '^x_' loop
    execute format('truncate stampd.%I', side.relname);
  end loop;
  return null;
end $$;
comment on function stampd.empty_sides() is 'Trigger: with the items their side tables are emptied.';
create trigger empty_sides after truncate on stampd.item
  for each statement execute function stampd.empty_sides();

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.field_text(text), stampd.field_text_long(text), stampd.field_folded(text), stampd.export_folded(json),
  stampd.export_foldeds(json), stampd.export_text(json, text[], regconfig), stampd.text_query(regconfig, text),
  stampd.export_string(json), stampd.export_long(json),
  stampd.export_int(json), stampd.export_any_double(text), stampd.export_double(json), stampd.export_elements(json),
  stampd.export_is_list(json), stampd.export_strings(json), stampd.export_longs(json), stampd.export_ints(json),
  stampd.export_doubles(json), stampd.export_object(text), stampd.export_at(text, text, text[]), stampd.export_each(text, text, text[]) to stampd;
