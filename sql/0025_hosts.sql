-- The hosts that hold records together (doc/explanation/records-on-several-hosts.md): the rows of z count, those of another namespace are
-- never asked.  Each host calls host_beat once a second.  No clock of this server decides anything: hosts measure the silence of others
-- by their own clocks, and name the beat that they saw last.

create table stampd.host (
  address       text primary key check (address ~ '^[a-z0-9_-]{1,63}([.][a-z0-9_-]{1,63}){0,7}$'),
  endpoint      text not null check (octet_length(endpoint) between 3 and 80),
  fingerprint   text not null unique check (fingerprint ~ '^[0-9a-f]{64}$'),
  is_leaving    boolean not null default false,
  number        bigint,                       -- another one after each start; null: the host takes no part now
  is_guest      boolean not null default false,
  joined        bigint not null default 0,    -- the first version of the list with this number
  alone         int not null default 0,       -- bit l - 1: what its group had of keys with level l may be elsewhere,
  alone_since   bigint not null default 0,    -- since this version
  beat          bigint not null default 0,
  seen          bigint not null default 0,    -- what the host reports: versions of the list,
  swept         bigint not null default 0,
  is_short      boolean not null default false,
  is_exhaustive boolean not null default false,
  records       bigint not null default 0,    -- with removals,
  bytes         bigint not null default 0,    -- and what they take
  doubtful      bigint not null default 0,    -- keys that may be farther away, and keys that are absent
  absent        bigint not null default 0,
  missing       bigint not null default 0,    -- records of which a copy is missing
  sent          bigint not null default 0,    -- messages since its start
  received      bigint not null default 0,
  unsure_ms     bigint not null default 0,    -- until it is exhaustive; -1: until all have passed on what they have
  memory        bigint not null default 0,    -- for records, in bytes
  content_bytes bigint not null default 0,    -- the largest content: the least of all hosts holds
  beat_at       timestamptz                   -- for administrators
) with (fillfactor = 50);
comment on table stampd.host is
  'In z: hosts that hold records together: where they listen, the fingerprints of their keys, and what they report.  See stampctl host.';

create table stampd.host_list (
  one            boolean primary key default true check (one),
  version        bigint not null default 0,   -- of the list of members
  last_number    bigint not null default 0,
  lost           bigint not null default 0,   -- hosts that ended, or left, since all had passed on what they had
  gone           bigint not null default 0,
  in_order       bigint not null default 0,   -- hosts in the order when both were 0
  is_short       boolean not null default false,
  missed_version bigint not null default 0,
  doubt          bigint not null default 0,   -- times that nobody could know what was lost,
  doubt_over     bigint not null default 0,   -- and those of them since which a time to live has passed
  copies         bigint not null default 1 check (copies between 0 and 7),
  ttl_s          bigint not null default 3600 check (ttl_s between 1 and 31536000),
  groups         text[] not null default '{}', -- of addresses without their last levels: which have had members
  places         uuid not null default gen_random_uuid()
) with (fillfactor = 50);
comment on table stampd.host_list is 'In z: the version of the list of hosts, what was lost, and the terms that all hosts share.';
insert into stampd.host_list default values;

create function stampd.host_notify() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  perform pg_notify('stampd_hosts', '');
  return null;
end $$;
comment on function stampd.host_notify() is 'Trigger: tells hosts that the list, or who may be in it, has changed.';
create trigger host_notify_list after update of version on stampd.host_list for each statement execute function stampd.host_notify();
create trigger host_notify_rows after insert or delete or update of endpoint, fingerprint, is_leaving on stampd.host
  for each statement execute function stampd.host_notify();

-- All functions below hold the row of host_list, so that they run one after the other.

create function stampd.host_least_swept() returns bigint language sql stable set search_path = stampd, pg_temp as $$
  select coalesce(min(swept), 9223372036854775807) from host where number is not null
$$;
comment on function stampd.host_least_swept() is 'Each member has passed on what the list of this version places elsewhere.';

create function stampd.host_is_all(list stampd.host_list, count bigint) returns boolean language sql immutable as $$
  select count > case when list.is_short then 0 else list.copies end or count > 0 and count >= list.in_order
$$;
comment on function stampd.host_is_all(stampd.host_list, bigint) is 'May so many hosts be all that have a record?';

create function stampd.host_miss(list stampd.host_list) returns stampd.host_list language plpgsql volatile
  set search_path = stampd, pg_temp as $$
begin
  if host_least_swept() >= list.missed_version then
    list.lost := 0;
    list.gone := 0;
  end if;
  if list.lost + list.gone = 0 then
    list.in_order := (select count(*) from host where number is not null and not is_guest);
    list.is_short := false;
  end if;
  list.is_short := list.is_short or exists (select 1 from host where number is not null and is_short);
  list.missed_version := list.version + 1;
  return list;
end $$;
comment on function stampd.host_miss(stampd.host_list) is
  'The next version is without a host, or without it in the order, before what it has is where that version wants it.';

create function stampd.host_group(address text, level int) returns text language sql immutable set search_path = pg_catalog as $$
  select array_to_string((string_to_array(address, '.'))[:cardinality(string_to_array(address, '.')) - level], '.')
$$;
comment on function stampd.host_group(text, int) is 'The address without its last levels: keys with this level are searched there.';

create function stampd.host_levels(of_address text) returns setof int language sql immutable set search_path = pg_catalog as $$
  select generate_series(1, cardinality(string_to_array(of_address, '.')) - 1)
$$;
comment on function stampd.host_levels(text) is 'Levels of keys that are not searched among all hosts.';

create function stampd.host_know(of_address text, of_level int, since bigint) returns boolean language sql stable
  set search_path = stampd, pg_temp as $$
  select exists (select 1 from host h where h.address <> of_address and h.number is not null and not h.is_guest and h.joined <= since
    and host_group(h.address, of_level) = host_group(of_address, of_level))
$$;
comment on function stampd.host_know(text, int, bigint) is
  'Is there another host in the order of the group of this one, since the version at least?';

create function stampd.host_lose(list stampd.host_list, of_address text) returns stampd.host_list language plpgsql volatile
  set search_path = stampd, pg_temp as $$
begin
  list := host_miss(list);
  list.lost := list.lost + 1;
  -- What it had of keys with a level was for its group alone.
  update host h set alone = h.alone | (1 << l - 1), alone_since = list.version + 1 from host_levels(of_address) l
    where h.address <> of_address and h.number is not null and host_group(h.address, l) = host_group(of_address, l)
      and not host_know(of_address, l, host_least_swept());
  delete from host where address = of_address and is_leaving;
  update host set number = null, is_exhaustive = false where address = of_address;
  if host_is_all(list, list.lost) then
    list.doubt := list.doubt + 1;
    list.lost := 0;
  end if;
  return list;
end $$;
comment on function stampd.host_lose(stampd.host_list, text) is 'A member is gone without having passed on what it has.';

create function stampd.host_store(list stampd.host_list) returns void language sql volatile set search_path = stampd, pg_temp as $$
  update host_list set version = list.version, last_number = list.last_number, lost = list.lost, gone = list.gone,
    in_order = list.in_order, is_short = list.is_short, missed_version = list.missed_version, doubt = list.doubt,
    doubt_over = list.doubt_over, groups = list.groups where one
$$;
comment on function stampd.host_store(stampd.host_list) is 'Writes the list, which notifies the hosts.';

create function stampd.host_beat(of_address text, of_fingerprint text, of_number bigint, of_seen bigint, of_swept bigint, of_short boolean,
    of_exhaustive boolean, of_counts bigint[], of_doubt_over bigint, silent bigint[], silent_beats bigint[])
  returns table (version bigint, self bigint, seen bigint, swept bigint, doubt bigint, doubt_over bigint, is_doubted boolean,
    copies bigint, ttl_s bigint, places text, address text, endpoint text, fingerprint text, number bigint, beat bigint, is_guest boolean,
    joined bigint, content_bytes bigint, state int,
    is_exhaustive boolean, records bigint, bytes bigint, doubtful bigint, absent bigint, missing bigint, sent bigint, received bigint,
    unsure_ms bigint, memory bigint, alone int)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  list host_list;
  own host;
  is_new boolean;
  is_changed boolean := false;
  one text;
begin
  select * into list from host_list l where l.one for update;
  select * into own from host h where h.address = of_address and h.fingerprint = of_fingerprint;
  if not found then
    return;
  end if;
  if of_seen > list.version or of_number > list.last_number then -- the database has gone back in time
    list.version := greatest(list.version, of_seen);
    list.last_number := greatest(list.last_number, of_number);
    list.doubt := list.doubt + 1;
    is_changed := true;
  end if;
  for one in select h.address from host h join unnest(silent, silent_beats) s(number, beat) on s.number = h.number and s.beat = h.beat
      where h.address <> of_address loop
    list := host_lose(list, one);
    is_changed := true;
  end loop;
  is_new := own.number is null or own.number <> of_number;
  if is_new then
    if own.number is not null then
      list := host_lose(list, of_address); -- it has started again
    end if;
    list.last_number := list.last_number + 1;
    update host h set alone = coalesce((select bit_or(1 << l - 1) from host_levels(of_address) l
        where host_group(of_address, l) = any(list.groups) and not host_know(of_address, l, 9223372036854775807)), 0),
      alone_since = list.version + 1 where h.address = of_address;
    list.groups := array(select distinct g from (select unnest(list.groups) union all
      select host_group(of_address, l) from host_levels(of_address) l) s(g) order by g);
    update host h set number = list.last_number, is_guest = h.is_leaving, joined = list.version + 1, beat = h.beat + 1, seen = 0, swept = 0,
      is_short = false, is_exhaustive = false, records = 0, bytes = 0, doubtful = 0, absent = 0, missing = 0, sent = 0, received = 0,
      unsure_ms = -1, memory = of_counts[9], content_bytes = of_counts[10], beat_at = clock_timestamp() where h.address = of_address;
    is_changed := true;
  else
    update host h set beat = h.beat + 1, seen = of_seen, swept = of_swept, is_short = of_short, is_exhaustive = of_exhaustive,
      records = of_counts[1], bytes = of_counts[2], doubtful = of_counts[3], absent = of_counts[4], missing = of_counts[5],
      alone = case when of_seen >= h.alone_since then h.alone & ~of_counts[11]::int else h.alone end,
      sent = of_counts[6], received = of_counts[7], unsure_ms = of_counts[8], memory = of_counts[9], content_bytes = of_counts[10],
      beat_at = clock_timestamp() where h.address = of_address;
    is_changed := is_changed or of_seen >= own.alone_since and own.alone & of_counts[11]::int <> 0;
    if own.is_leaving and not own.is_guest then
      list := host_miss(list);
      list.gone := list.gone + 1;
      update host h set is_guest = true where h.address = of_address;
      is_changed := true;
    elsif own.is_leaving and of_swept >= list.version and of_counts[1] = 0 then
      delete from host h where h.address = of_address;
      is_changed := true;
    end if;
  end if;
  if of_doubt_over > list.doubt_over then
    list.doubt_over := least(of_doubt_over, list.doubt);
    update host_list l set doubt_over = list.doubt_over where l.one;
  end if;
  if is_changed then
    list.version := list.version + 1;
    perform host_store(list);
  end if;
  return query select list.version, coalesce((select h.number from host h where h.address = of_address), 0),
      (select coalesce(min(h.seen), 9223372036854775807) from host h where h.number is not null), host_least_swept(), list.doubt,
      list.doubt_over, host_is_all(list, list.lost + list.gone) and host_least_swept() < list.missed_version,
      list.copies, list.ttl_s, list.places::text, h.address, h.endpoint, h.fingerprint, h.number, h.beat, h.is_guest, h.joined, h.content_bytes,
      case when h.number is null then 0 when h.is_leaving then 2 else 1 end, h.is_exhaustive,
      h.records, h.bytes, h.doubtful, h.absent, h.missing, h.sent, h.received, h.unsure_ms, h.memory, h.alone
    from host h order by h.address;
end $$;
comment on function stampd.host_beat(text, text, bigint, bigint, bigint, boolean, boolean, bigint[], bigint, bigint[], bigint[]) is
  'A host reports, its counts in the order of the columns from records on, and names those whose beats have not changed for too long; returns all hosts, and what is known of losses.';

create function stampd.host_add(of_address text, of_endpoint text, of_fingerprint text) returns text language plpgsql volatile
  set search_path = stampd, pg_temp as $$
begin
  perform 1 from host_list where one for update;
  if exists (select 1 from host where array_length(string_to_array(address, '.'), 1) <> array_length(string_to_array(of_address, '.'), 1)) then
    return 'all addresses must have the same number of levels';
  elsif (select count(*) from host) >= 64 then
    return 'there are at most 64 hosts';
  elsif of_endpoint !~ '^([0-9]{1,3}([.][0-9]{1,3}){3}|[[][0-9a-fA-F:.]+[]]):[0-9]{1,5}$' then
    return 'the endpoint must be an address in numbers, a colon and a port, as 192.0.2.1:7412 or [2001:db8::1]:7412';
  elsif exists (select 1 from host where address = of_address or fingerprint = of_fingerprint) then
    return 'there is a host with this address, or with this fingerprint';
  end if;
  insert into host (address, endpoint, fingerprint) values (of_address, of_endpoint, of_fingerprint);
  return null;
end $$;
comment on function stampd.host_add(text, text, text) is 'Lets a host take part; returns why not, one sentence.';

create function stampd.host_remove(of_address text, at_once boolean) returns text language plpgsql volatile
  set search_path = stampd, pg_temp as $$
declare
  list host_list;
begin
  select * into list from host_list where one for update;
  if not exists (select 1 from host where address = of_address) then
    return 'there is no such host';
  end if;
  update host set is_leaving = true where address = of_address;
  if at_once and exists (select 1 from host where address = of_address and number is not null) then
    list := host_lose(list, of_address);
    list.version := list.version + 1;
    perform host_store(list);
  end if;
  delete from host where address = of_address and number is null;
  return null;
end $$;
comment on function stampd.host_remove(text, boolean) is
  'The host passes on what it has, and goes; at once: what it alone has is lost.  Returns why not, one sentence.';

create function stampd.host_terms(of_copies bigint, of_ttl_s bigint) returns text language plpgsql volatile
  set search_path = stampd, pg_temp as $$
begin
  perform 1 from host_list where one for update;
  if exists (select 1 from host where number is not null) then
    return 'hosts take part: the terms change while all of them are stopped, and removed from the list';
  end if;
  update host_list set copies = coalesce(of_copies, copies), ttl_s = coalesce(of_ttl_s, ttl_s) where one;
  return null;
end $$;
comment on function stampd.host_terms(bigint, bigint) is 'Sets the terms that all hosts share, null: as it is; returns why not, one sentence.';

revoke execute on function stampd.host_beat(text, text, bigint, bigint, bigint, boolean, boolean, bigint[], bigint, bigint[], bigint[]),
  stampd.host_add(text, text, text), stampd.host_remove(text, boolean), stampd.host_terms(bigint, bigint) from public;
grant execute on function stampd.host_beat(text, text, bigint, bigint, bigint, boolean, boolean, bigint[], bigint, bigint[], bigint[])
  to stampd;
grant select, update, delete on stampd.host to stampd;
grant select, update on stampd.host_list to stampd;
