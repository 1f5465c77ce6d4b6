-- Values that are unique in all namespaces.  doc/reference/collections.md explains how two databases agree without a common transaction.
--
-- Which documents have which values is recorded by the database of each namespace alone, in unique_value.  The database of z records
-- which namespace may have a value: a commit reserves there what it takes, before it ends.  A reservation without a commit is found
-- by a query to the database that it names.

-- --- in the database of z ---

create table stampd.global_value (
  class       text collate "C" not null,
  name        text collate "C" not null,
  value       text collate "C" not null,
  database    text collate "C" not null,
  reservation bigint not null,
  primary key (class, name, value)
);
create index global_value_database on stampd.global_value (database);
comment on table stampd.global_value is
  'In the database of z: values of properties that are unique in all namespaces, and which may have them.';
comment on column stampd.global_value.database is 'Documents of no other database have the value; whether one of this has is recorded there only.';
comment on column stampd.global_value.reservation is 'Number of the last commit that was about to take or give up the value.';
create sequence stampd.global_reservation_number;
grant select, insert, update, delete on stampd.global_value to stampd;
grant usage on sequence stampd.global_reservation_number to stampd;

create function stampd.global_reserve(classes text[], names text[], vals text[], of_database text)
  returns table (number bigint, ordinal int, database text, reservation bigint)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  present constant bigint := nextval('global_reservation_number');
begin
  if of_database <> current_database() then -- the commit that follows makes this durable
    perform set_config('synchronous_commit', 'off', true);
  end if;
  insert into global_value as g (class, name, value, database, reservation)
    select u.class, u.name, u.value, of_database, present from unnest(classes, names, vals) u(class, name, value) order by 1, 2, 3
    on conflict (class, name, value) do update set reservation = excluded.reservation where g.database = excluded.database;
  -- A later transaction has waited for the first; this statement sees what that one left.
  return query select present, null::int, null::text, null::bigint
    union all select present, u.ordinal::int, g.database, g.reservation
      from unnest(classes, names, vals) with ordinality u(class, name, value, ordinal) join global_value g using (class, name, value)
      where g.reservation <> present;
end $$;
comment on function stampd.global_reserve(text[], text[], text[], text) is
  'Reserves values for a database.  A row with the number of the reservation, and one for each that another database has, with its '
  'position.  Durable with the commit that follows it on the same server.';

create function stampd.global_drop(classes text[], names text[], vals text[], of_database text, of_reservation bigint) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  delete from global_value g using unnest(classes, names, vals) u(class, name, value)
    where g.class = u.class and g.name = u.name and g.value = u.value and g.database = of_database and g.reservation = of_reservation
$$;
comment on function stampd.global_drop(text[], text[], text[], text, bigint) is
  'Values that a database does not have any more, unless a later commit has reserved them.';

create function stampd.release_database(of_database text) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  released bigint;
begin
  delete from global_value g where g.database = of_database;
  get diagnostics released = row_count;
  return released;
end $$;
comment on function stampd.release_database(text) is
  'In the database of z: frees all values of a database that is no more.  Returns how many.';

-- --- in the database of a namespace ---

create function stampd.global_key(of_class text, of_name text, of_value text) returns bigint language sql immutable as $$
  select hashtextextended('global ' || of_class || '.' || of_name || ' ' || of_value, 1)
$$;
comment on function stampd.global_key(text, text, text) is 'Of the lock that a commit holds which takes or gives up the value.';

create function stampd.global_note(held jsonb, let_go jsonb) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  noted text := current_setting('stampd.reservations', true);
begin
  if coalesce(noted, '') <> '' then
    perform set_config('stampd.reservations', (noted::jsonb || coalesce(held, '[]') || coalesce(let_go, '[]'))::text, true);
  elsif held <> '[]' then
    perform fail('ST006', 'a value that is unique in all namespaces is given by requests to the server only');
  end if;
end $$;
comment on function stampd.global_note(jsonb, jsonb) is
  'Notes, for the reservation in z, values that this transaction takes and gives up.  A session that does not reserve may only give up: '
  'then z finds out when the value is wanted.  ST006: it takes one.';

create function stampd.global_changes() returns table (class text, name text, value text, id text)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(o.key) from (
    select distinct global_key(u.class, u.name, n.pair ->> 1) as key
      from jsonb_array_elements(current_setting('stampd.reservations')::jsonb) n(pair) join unique_property u on u.number = (n.pair ->> 0)::bigint
      order by 1) o;
  return query
    select distinct u.class, u.name, n.pair ->> 1,
           (select v.id from unique_value v where v.property = u.number and v.value = n.pair ->> 1)
      from jsonb_array_elements(current_setting('stampd.reservations')::jsonb) n(pair) join unique_property u on u.number = (n.pair ->> 0)::bigint
      order by 1, 2, 3;
end $$;
comment on function stampd.global_changes() is
  'What this transaction has noted: values with the documents that take them (null: given up).  Queries about these values wait from '
  'here on until it has ended.';

create function stampd.global_state(of_class text, of_name text, of_value text, minute bigint) returns text
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  if not pg_try_advisory_xact_lock_shared(global_key(of_class, of_name, of_value)) then
    return 'busy';
  end if;
  -- A document that has expired has no value; its lock keeps the expiry from being moved at this moment.
  perform from unique_property u join unique_value v on v.property = u.number and v.value = of_value
    join expiry e on e.class = of_class and e.id = v.id and e.until <= minute
    where u.class = of_class and u.name = of_name for update of e skip locked;
  if found then
    delete from unique_value v using unique_property u
      where u.class = of_class and u.name = of_name and v.property = u.number and v.value = of_value;
    return 'free';
  end if;
  -- Before all documents have been read, one that has not may have it.
  perform from unique_property u where u.class = of_class and u.name = of_name and u.is_global
    and (not u.is_ready or exists (select from unique_value v where v.property = u.number and v.value = of_value));
  return case when found then 'held' else 'free' end;
end $$;
comment on function stampd.global_state(text, text, text, bigint) is
  'Has a document of this namespace the value: held, free, or busy: a transaction that may change it has not ended.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.global_reserve(text[], text[], text[], text),
  stampd.global_drop(text[], text[], text[], text, bigint), stampd.global_key(text, text, text),
  stampd.global_note(jsonb, jsonb), stampd.global_changes(), stampd.global_state(text, text, text, bigint) to stampd;
