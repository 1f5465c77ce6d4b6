-- Subscriptions of strangers: bounded for each client and for the namespace, and short until the session returns.

alter table stampd.subs
  add column client     bigint,
  add column defs       int not null default 0,
  add column bytes      bigint not null default 0,
  add column trial_from bigint,
  add column asked      bigint;
comment on column stampd.subs.client is
  'Keyed digest of the address that declared it, or added to it last; null: of nobody that is counted.';
comment on column stampd.subs.defs is 'How many definitions it has.';
comment on column stampd.subs.bytes is 'Bytes of their texts and keys.';
comment on column stampd.subs.trial_from is 'Minute in which it was declared, until the session has returned in a later one; null: it has.';
comment on column stampd.subs.asked is 'Until when it will last once the session has returned.';
create index subs_client on stampd.subs (client) where client is not null;

update stampd.subs s set defs = f.count, bytes = f.bytes
  from (select session, count(*) as count, sum(octet_length(key) + octet_length(def)) as bytes from stampd.subs_def group by session) f
  where f.session = s.session;

alter table stampd.subs_count add column defs bigint not null default 0, add column bytes bigint not null default 0;
comment on column stampd.subs_count.defs is 'Definitions of all of them.';
comment on column stampd.subs_count.bytes is 'Bytes of these.';
update stampd.subs_count set (defs, bytes) = (select coalesce(sum(s.defs), 0), coalesce(sum(s.bytes), 0) from stampd.subs s);

create or replace function stampd.subs_counted() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
declare
  now_sums bigint[] := '{0,0,0,0}';
  was_sums bigint[] := '{0,0,0,0}';
begin
  if tg_op = 'TRUNCATE' then
    update subs_count set held = 0, woken = 0, defs = 0, bytes = 0 where one;
    return null;
  end if;
  if tg_op <> 'DELETE' then
    select array[count(*), count(n.endpoint), coalesce(sum(n.defs), 0), coalesce(sum(n.bytes), 0)] into now_sums from now_there n;
  end if;
  if tg_op <> 'INSERT' then
    select array[count(*), count(w.endpoint), coalesce(sum(w.defs), 0), coalesce(sum(w.bytes), 0)] into was_sums from was_there w;
  end if;
  if now_sums <> was_sums then
    update subs_count c set held = c.held + now_sums[1] - was_sums[1], woken = c.woken + now_sums[2] - was_sums[2],
        defs = c.defs + now_sums[3] - was_sums[3], bytes = c.bytes + now_sums[4] - was_sums[4] where c.one;
  end if;
  return null;
end $$;

create function stampd.subs_client(address text) returns bigint language sql stable set search_path = stampd, pg_temp as $$
  select ('x' || left(encode(sha256(convert_to(s.secret || address, 'UTF8')), 'hex'), 16))::bit(64)::bigint
    from space s where s.one and address <> ''
$$;
comment on function stampd.subs_client(text) is 'What stands for the address of a client in column client.';

-- --- the session returns ---

create function stampd.subs_return(of_session text, minute bigint) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  update subs s set until = greatest(s.until, s.asked), trial_from = null, asked = null
    where s.session in (select o.session from subs o where o.session = of_session and o.trial_from < minute and o.until > minute
                          for no key update skip locked)
$$;
comment on function stampd.subs_return(text, bigint) is
  'The session has shown in a later minute that it is used: its subscription lasts as long as was asked.  Nothing when it is being changed.';

drop function stampd.subs_show(text, bigint);
create function stampd.subs_show(of_session text, minute bigint)
  returns table (def text, version bigint, until bigint, endpoint text, p256dh text, auth text, context text, trial int)
  language plpgsql stable set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  return query select null::text, s.version, s.until, s.endpoint, s.p256dh, s.auth, s.context,
      case when s.trial_from is null then 0 when s.trial_from < minute then 2 else 1 end
    from subs s where s.session = of_session and s.until > minute;
  if found then
    return query select f.def, null::bigint, null::bigint, null::text, null::text, null::text, null::text, null::int
      from subs_def f where f.session = of_session order by f.def collate "C";
  end if;
end $$;
comment on function stampd.subs_show(text, bigint) is
  'A row of the subscription, then one a definition; none: there is none.  trial 1: its session has not returned yet, 2: it may now.';

create or replace function stampd.subs_touch(classes text[], ids text[], own text, wakes boolean, minute bigint, start bigint, queue int)
  returns table (kind text, name text, number bigint) language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  keys     text[];
  versions bigint[];
  since    bigint;
begin
  if wakes then
    perform subs_lock(false);
    perform set_config('stampd.touched', 'on', true);
  end if;
  select array_agg(k.key), array_agg(k.version) into keys, versions from subs_keys(classes, ids) k;
  if own is not null then
    select coalesce(s.trial_from, minute) into since from subs s where s.session = own and s.until > minute;
    if found then
      if since < minute then
        perform subs_return(own, minute);
      end if;
      return query select 'own', null::text, null::bigint;
      return query select 'def', f.def, k.version from unnest(keys, versions) k(key, version)
        join subs_def f on f.key = k.key and f.session = own order by f.def collate "C";
    end if;
  end if;
  if wakes then
    return query select 'task', w.taskid, w.startat from subs_wake(keys, versions, own, minute, start, queue) w;
  end if;
end $$;

-- --- a change ---

drop function stampd.subs_put(text, bigint, bigint, bigint, boolean, boolean, text[], text[], text[], bigint, bigint, bigint, text[], boolean, text);
create function stampd.subs_put(of_session text, minute bigint, present bigint, life bigint, may_create boolean, is_whole boolean,
                                keys text[], defs text[], drops text[], most bigint, most_held bigint, most_woken bigint,
                                push text[], with_context boolean, of_context text, address text, trial_minutes bigint, mosts bigint[])
  returns table (def text, version bigint, until bigint, endpoint text, p256dh text, auth text, context text, trial int)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held    subs;
  counted bigint;
  weight  bigint;
  counts  subs_count;
  is_new  boolean := false;
  is_more boolean;
  was_woken boolean;
  ends    bigint;
  over    text;
begin
  loop
    select * into held from subs s where s.session = of_session for no key update;
    exit when found;
    if not may_create then
      return;
    end if;
    insert into subs (session, version, until) values (of_session, 0, 0) on conflict (session) do nothing;
    is_new := found;
  end loop;
  was_woken := held.endpoint is not null;
  if held.until <= minute then
    if not may_create then
      return;
    end if;
    held.until := 0;
    held.endpoint := null;
    held.p256dh := null;
    held.auth := null;
    held.context := null;
    held.asked := null;
    held.trial_from := case when trial_minutes > 0 then minute end;
  elsif held.trial_from < minute then
    held.until := greatest(held.until, held.asked);
    held.asked := null;
    held.trial_from := null;
  end if;
  if held.until = 0 or is_whole then
    delete from subs_def f where f.session = of_session;
  end if;
  delete from subs_def f using unnest(drops) d(key) where f.session = of_session and f.key = d.key;
  insert into subs_def as f (key, session, def) select k.key, of_session, k.def from unnest(keys, defs) k(key, def)
    order by k.key collate "C" on conflict (key, session) do update set def = excluded.def where f.def <> excluded.def;
  select count(*), coalesce(sum(octet_length(f.key) + octet_length(f.def)), 0) into counted, weight
    from subs_def f where f.session = of_session;
  if counted > most then
    perform fail('ST006', counted::text);
  end if;
  is_more := held.until = 0 or counted > held.defs;
  if is_more then
    held.client := subs_client(address);
  end if;
  if push is not null then
    held.endpoint := push[1];
    held.p256dh := push[2];
    held.auth := push[3];
  end if;
  if with_context then
    held.context := of_context;
  end if;
  ends := case when life > 0 then minute + life else greatest(held.until, held.asked, minute - life) end;
  held.asked := case when held.trial_from is not null then ends end;
  update subs s set version = case when held.version < present then present else version_above(held.version) end,
      until = least(ends, held.trial_from + trial_minutes), trial_from = held.trial_from, asked = held.asked, client = held.client,
      defs = counted, bytes = weight, endpoint = held.endpoint, p256dh = held.p256dh, auth = held.auth, context = held.context
    where s.session = of_session;
  was_woken := was_woken or held.endpoint is null;
  if is_more and held.client is not null then
    select case when count(*) > mosts[1] then 'ST021' when sum(s.defs) > mosts[2] then 'ST022' end into over
      from subs s where s.client = held.client and s.until > minute;
    if over is not null then
      perform fail(over, '');
    end if;
  end if;
  for turn in 1 .. 2 loop
    select * into counts from subs_count c where c.one;
    over := case when is_new and counts.held > most_held then 'ST007' when not was_woken and counts.woken > most_woken then 'ST008'
                 when is_more and counts.defs > mosts[3] then 'ST023' when is_more and counts.bytes > mosts[4] then 'ST024' end;
    exit when over is null;
    if turn = 2 or purge_subs() = 0 then
      perform fail(over, '');
    end if;
  end loop;
  perform subs_lock(true);
  return query select * from subs_show(of_session, minute);
end $$;
comment on function stampd.subs_put(text, bigint, bigint, bigint, boolean, boolean, text[], text[], text[], bigint, bigint, bigint, text[], boolean,
  text, text, bigint, bigint[]) is
  'Changes a subscription: all definitions replaced or some added, others dropped; push null: stays, {null,…}: none.  `life`: the end '
  'is so many minutes from now; negative: as many at least.  A new one lasts `trial_minutes` (0: as asked) until its session returns in a later '
  'minute.  ST006: there would be more definitions than `most`, the detail says how many.  ST007, ST008: more than `most_held` '
  'subscriptions, than `most_woken` with an address; ST021, ST022: subscriptions, definitions of the client at `address` (empty: not '
  'counted), ST023, ST024: definitions of the namespace, their bytes, than `mosts` says in this order.  Those that have ended are purged '
  'for it.  Returns what subs_show does; nothing: there is none and may_create is false.';

revoke execute on function stampd.subs_client(text), stampd.subs_return(text, bigint), stampd.subs_show(text, bigint),
  stampd.subs_put(text, bigint, bigint, bigint, boolean, boolean, text[], text[], text[], bigint, bigint, bigint, text[], boolean,
  text, text, bigint, bigint[]) from public;
grant execute on function stampd.subs_client(text), stampd.subs_return(text, bigint), stampd.subs_show(text, bigint),
  stampd.subs_put(text, bigint, bigint, bigint, boolean, boolean, text[], text[], text[], bigint, bigint, bigint, text[], boolean,
  text, text, bigint, bigint[]) to stampd;
