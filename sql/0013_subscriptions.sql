-- Subscriptions: what sessions want to be sent, found by what a commit has written.  doc/reference/subscriptions.md describes the model.

create table stampd.subscription (
  session    text collate "C" primary key check (session ~ '^[A-Za-z0-9_-]{16,64}$'),
  version    bigint not null,
  until      bigint not null,
  endpoint   text,
  p256dh     text,
  auth       text,
  context    text,
  client     bigint,
  account    text collate "C" not null default '',
  credential text collate "C",
  by_rules   boolean not null default false,
  defs       int not null default 0,
  bytes      bigint not null default 0,
  trial_from bigint,
  requested  bigint,
  vouched    boolean not null default false,
  check ((endpoint is null) = (p256dh is null) and (endpoint is null) = (auth is null))
);
comment on table stampd.subscription is 'Subscriptions: one a session.  Its name is a secret of the session.';
comment on column stampd.subscription.version is 'Stamp of its last change.';
comment on column stampd.subscription.until is 'Minutes since 1970, UTC: from this one on there is no such subscription.';
comment on column stampd.subscription.endpoint is 'Where the session is woken (Web Push); null: nowhere.';
comment on column stampd.subscription.context is 'A text of the application.';
comment on column stampd.subscription.client is
  'Keyed digest of the address that declared it, or added to it last; null: the address is not counted.';
comment on column stampd.subscription.account is 'The account that declared it; empty: nobody had signed in.';
comment on column stampd.subscription.credential is 'The session of the account, as its item names it; token END ISSUER ROLE…: a token of a provider; null: none.';
comment on column stampd.subscription.by_rules is 'Access rules decide what it is sent.';
comment on column stampd.subscription.defs is 'How many definitions it has.';
comment on column stampd.subscription.bytes is 'Bytes of their texts and keys.';
comment on column stampd.subscription.trial_from is 'Minute in which it was declared, until the session has returned in a later one; null: it has.';
comment on column stampd.subscription.requested is 'Until when it will last once the session has returned.';
comment on column stampd.subscription.vouched is
  'Declared or changed with the administrator''s key; only such a session gets push messages while the namespace is closed.';
create index subscription_until on stampd.subscription (until);
create index subscription_account on stampd.subscription (account) where account <> '';
create index subscription_client on stampd.subscription (client) where client is not null;

create table stampd.subscription_definition (
  key     text collate "C" not null,
  session text collate "C" not null,
  def     text not null,
  primary key (key, session)
);
comment on table stampd.subscription_definition is 'Definitions of subscriptions; the primary key is the reverse index.';
comment on column stampd.subscription_definition.key is
  'What can match, in one form: cClass/@, dClass/@id, mClass/collection@value, the value as in table member.';
comment on column stampd.subscription_definition.def is 'The definition, as the session wrote it.';
create index subscription_definition_session on stampd.subscription_definition (session, key);

create table stampd.subscription_matched (
  session text collate "C" not null,
  taken   bigint not null default 0,
  key     text collate "C" not null,
  version bigint not null,
  id      text collate "C" not null default '',
  kind    int not null default 0,
  xid     xid8 not null default pg_current_xact_id(),
  primary key (session, taken, key, id, kind)
);
comment on table stampd.subscription_matched is 'Definitions that matched a commit and are not sent yet.';
comment on column stampd.subscription_matched.taken is 'The transaction in which a task has taken it to send it; 0: none has.';
comment on column stampd.subscription_matched.id is
  'Of a class or collection, where access rules decide: a document that was written; empty: any.';
comment on column stampd.subscription_matched.key is 'Of the definition; w: the sight of the account itself may have changed, by its roles or in a team.';
comment on column stampd.subscription_matched.kind is
  '0: written; 1: of a collection, the document was a member, and its relation to the account has ended by this commit.';
comment on column stampd.subscription_matched.xid is 'The transaction of that commit.';
comment on column stampd.subscription_matched.version is 'Version of the first commit that it matched since it was last sent.';

grant select, insert, update, delete on stampd.subscription, stampd.subscription_definition, stampd.subscription_matched to stampd;

-- --- how many there are ---

create table stampd.subscription_count (
  one   boolean primary key default true check (one),
  held  bigint not null,
  woken bigint not null,
  defs  bigint not null default 0,
  bytes bigint not null default 0
);
comment on table stampd.subscription_count is 'One row: how many rows subscription has, for the limits; triggers keep it.';
comment on column stampd.subscription_count.woken is 'Those with an endpoint: one commit may have to note that many.';
comment on column stampd.subscription_count.defs is 'Definitions of all of them.';
comment on column stampd.subscription_count.bytes is 'Bytes of these.';
insert into stampd.subscription_count (held, woken) values (0, 0);
grant select, update on stampd.subscription_count to stampd;

create function stampd.subscription_counted() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
declare
  now_sums bigint[] := '{0,0,0,0}';
  was_sums bigint[] := '{0,0,0,0}';
begin
  if tg_op = 'TRUNCATE' then
    update subscription_count set held = 0, woken = 0, defs = 0, bytes = 0 where one;
    return null;
  end if;
  if tg_op <> 'DELETE' then
    select array[count(*), count(n.endpoint), coalesce(sum(n.defs), 0), coalesce(sum(n.bytes), 0)] into now_sums from now_there n;
  end if;
  if tg_op <> 'INSERT' then
    select array[count(*), count(w.endpoint), coalesce(sum(w.defs), 0), coalesce(sum(w.bytes), 0)] into was_sums from was_there w;
  end if;
  if now_sums <> was_sums then
    update subscription_count c set held = c.held + now_sums[1] - was_sums[1], woken = c.woken + now_sums[2] - was_sums[2],
        defs = c.defs + now_sums[3] - was_sums[3], bytes = c.bytes + now_sums[4] - was_sums[4] where c.one;
  end if;
  return null;
end $$;
comment on function stampd.subscription_counted() is 'Trigger: keeps subscription_count.';
create trigger subscription_counted_insert after insert on stampd.subscription referencing new table as now_there
  for each statement execute function stampd.subscription_counted();
create trigger subscription_counted_update after update on stampd.subscription referencing old table as was_there new table as now_there
  for each statement execute function stampd.subscription_counted();
create trigger subscription_counted_delete after delete on stampd.subscription referencing old table as was_there
  for each statement execute function stampd.subscription_counted();
create trigger subscription_counted_truncate after truncate on stampd.subscription
  for each statement execute function stampd.subscription_counted();

-- --- the moment in which no commit is under way ---
--
-- Commits share this lock from reading the definitions to their end.  When a transaction has it alone, at the end of changing
-- definitions or before reading what was noted, all commits that read before have ended, and all others will see what is committed
-- now.  It is taken in a statement before the one that reads.

create function stampd.subscription_lock(is_alone boolean) returns void language plpgsql volatile as $$
declare
  wait_ms int := (select s.setting from pg_settings s where s.name = 'lock_timeout'); -- ms; 0: without end
  start    timestamptz := clock_timestamp();
begin
  if not is_alone then
    perform pg_advisory_xact_lock_shared(hashtextextended('stampd subscriptions', 0));
    return;
  end if;
  loop
    begin
      perform set_config('lock_timeout', '50ms', true);
      perform pg_advisory_xact_lock(hashtextextended('stampd subscriptions', 0));
      perform set_config('lock_timeout', wait_ms::text, true);
      return;
    exception when lock_not_available then
      if wait_ms > 0 and clock_timestamp() >= start + wait_ms * interval '1 ms' then
        raise;
      end if;
      perform pg_sleep(0.02 + random() * 0.06);
    end;
  end loop;
end $$;
comment on function stampd.subscription_lock(boolean) is
  'Until the end of the transaction: with other commits, or alone.  A transaction that waits to be alone lets commits pass again and again, so that '
  'a long one does not make all others stand behind it; up to lock_timeout in all.';

-- --- what a commit matches ---

create function stampd.subscription_keys(classes text[], ids text[]) returns table (key text, version bigint, written text, departed text)
  language plpgsql stable set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  return query
    with written as materialized (
      select d.class, d.id, d.version,
             exists (select from sight s where s.class = d.class and s.id = d.id and s.lost = pg_current_xact_id()) as is_lost
        from unnest(classes, ids) u(class, id) join doc d on d.class = u.class and d.id = u.id
    )
    select t.key, max(t.version), case when count(t.id) between 1 and 8 then json_agg(t.id)::text end,
        case when count(t.departed) between 1 and 8 then (json_agg(t.departed) filter (where t.departed is not null))::text
             when count(t.departed) > 8 then '[""]' end from (
      select 'c' || w.class || '/@' as key, w.version, w.id, null as departed from written w
      union all
      select 'd' || w.class || '/@' || w.id, w.version, null, null from written w
      union all
      select 'm' || w.class || '/' || c.name || '@' || m.value, w.version, m.id, case when w.is_lost and m.was_here then m.id end
        from written w join collection c on c.class = w.class
        join member m on m.collection = c.number and m.id = w.id and m.xid = pg_current_xact_id()
    ) t group by t.key order by t.key collate "C";
end $$;
comment on function stampd.subscription_keys(text[], text[]) is
  'The keys that the present transaction can match, which has written or deleted these documents; of a class or a '
  'collection with the ids, a JSON array, unless they are many; of a collection also with those that were members before and have '
  'lost a principal, an empty id in place of many.';

create function stampd.subscription_relation_ends(account text, of_class text, of_id text) returns boolean
  language plpgsql stable set search_path = stampd, pg_temp as $$
begin
  return exists (
    select from sight s where s.class = of_class and s.id = of_id and s.lost = pg_current_xact_id()
      and (s.principal in ('o:' || account, 'm:' || account) or starts_with(s.principal, 'r:' || octet_length(account) || ':' || account || ':')
           or (s.principal like 't:%' and exists (
             select from sight_place p join item i on i.class = p.class and i.id = substr(s.principal, 3) and i.iclass = p.iclass and i.key = account
               where p.is_of_team and p.kind = 'members' and i.content is not null))));
end $$;
comment on function stampd.subscription_relation_ends(text, text, text) is
  'Has the present transaction taken a principal of the account, or of a team in which it is, from the document?';

create function stampd.subscription_sights(classes text[], ids text[]) returns table (account text, version bigint)
  language plpgsql stable set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  return query
    select r.account, max(r.version) from (
      select i.id as account, i.version from unnest(classes, ids) u(class, id) join doc d on d.class = u.class and d.id = u.id
        join item i on i.class = d.class and i.id = d.id and i.iclass = 'Roles' and i.version = d.version
        where u.class = 'Account'
      union all
      select case s.principal ~ '^m:' when true then substr(s.principal, 3) else
               convert_from(substring(convert_to(s.principal, 'UTF8') from 4 + length(split_part(s.principal, ':', 2))
                                                                    for split_part(s.principal, ':', 2)::int), 'UTF8') end, s.version
        from unnest(classes, ids) u(class, id) join sight s on s.class = u.class and s.id = u.id and s.xid = pg_current_xact_id()
        where s.principal ~ '^[mr]:' and exists (select from sight_place p where p.class = u.class and p.is_of_team)
    ) r group by r.account;
end $$;
comment on function stampd.subscription_sights(text[], text[]) is
  'The accounts whose sight of other documents the present transaction may have changed, which has written these: by their roles, or as '
  'members of teams.';

create function stampd.subscription_wake(keys text[], versions bigint[], lists text[], departed text[], classes text[], ids text[], own text,
    minute bigint, start bigint, queue int)
  returns table (taskid text, startat bigint) language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  sessions text[];
begin
  with woken as materialized (
    select f.session, k.key, 0 as kind, k.version, case when s.by_rules then k.list end as list
      from unnest(keys, versions, lists) k(key, version, list)
      join subscription_definition f on f.key = k.key join subscription s on s.session = f.session
      where s.endpoint is not null and s.until > minute and s.session is distinct from own
    union all
    select f.session, k.key, 1, k.version, l.list from unnest(keys, versions, departed) k(key, version, departed)
      join subscription_definition f on f.key = k.key join subscription s on s.session = f.session
      cross join lateral (
        select json_agg(j.id)::text as list from json_array_elements_text(k.departed::json) j(id)
          where j.id = '' or subscription_relation_ends(s.account, substr(split_part(k.key, '/', 1), 2), j.id)) l
      where k.departed is not null and l.list is not null and s.account <> '' and s.by_rules
        and s.endpoint is not null and s.until > minute and s.session is distinct from own
    union all
    select s.session, 'w', 0, a.version, null from subscription_sights(classes, ids) a join subscription s on s.account = a.account
      where s.account <> '' and s.by_rules and s.endpoint is not null and s.until > minute and s.session is distinct from own
  ), noted as (
    insert into subscription_matched (session, key, id, kind, version) select w.session, w.key, coalesce(i.id, ''), w.kind, w.version from woken w
      left join lateral (
        select j.id from json_array_elements_text(w.list::json) j(id)
          where (select count(*) from (select from subscription_matched m where m.session = w.session and m.taken = 0 and m.key = w.key
                                         and m.kind = w.kind limit 32) c) < 32) i on true
      order by w.session, w.key, i.id, w.kind on conflict (session, taken, key, id, kind) do nothing
  )
  select array_agg(distinct w.session order by w.session) into sessions from woken w;
  if sessions is null then
    return;
  end if;
  return query
    insert into taskqueue as t (taskid, opname, param, startat, qn, resource, created)
      select translate(gen_random_uuid()::text, '-', ''), 'push', '{"session":"' || s.session || '"}', start, queue, s.session, start
        from unnest(sessions) s(session) order by s.session collate "C"
      on conflict (opname, resource) where starttime is null and resource is not null do nothing
      returning t.taskid, t.startat;
  -- One that failed too often has waited for this.  Looked for behind the insertion, which waits for one that is being parked;
  -- those that wait already are not locked, so that commits do not stand in line for them.
  return query
    with parked as materialized (
      select q.taskid from taskqueue q
        where q.opname = 'push' and q.resource = any (sessions) and q.starttime is null
          and q.startat = 991231235959999 and q.exc is distinct from 'HELD'
        order by q.resource collate "C" for no key update
    )
    update taskqueue t set startat = start, retry = 0, exc = null, report = null
      from parked p where t.taskid = p.taskid returning t.taskid, t.startat;
end $$;
comment on function stampd.subscription_wake(text[], bigint[], text[], text[], text[], text[], text, bigint, bigint, int) is
  'Notes what matched for sessions that are to be woken, all but one, makes the tasks that do not wait yet and starts those that were parked.';

create function stampd.subscription_is_of(held stampd.subscription, of_account text, by_rules boolean) returns boolean language sql immutable as $$
  select of_account is null or (held.account = of_account and not (by_rules and held.vouched))
$$;
comment on function stampd.subscription_is_of(stampd.subscription, text, boolean) is
  'May a caller of this account use it?  Empty: nobody has signed in; null: an administrator.  What an administrator declared is none '
  'of a caller under rules.';

create function stampd.subscription_match(classes text[], ids text[], own text, wakes boolean, minute bigint, start bigint, queue int,
                                          of_account text default null, by_rules boolean default false)
  returns table (kind text, name text, number bigint) language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  keys     text[];
  versions bigint[];
  lists    text[];
  departed text[];
  since    bigint;
begin
  if wakes then
    perform subscription_lock(false);
    perform set_config('stampd.matched', 'on', true);
  end if;
  select array_agg(k.key), array_agg(k.version), array_agg(k.written), array_agg(k.departed) into keys, versions, lists, departed
    from subscription_keys(classes, ids) k;
  if own is not null then
    select coalesce(s.trial_from, minute) into since from subscription s
      where s.session = own and s.until > minute and subscription_is_of(s, of_account, subscription_match.by_rules);
    if found then
      if since < minute then
        perform subscription_return(own, minute);
      end if;
      return query select 'own', null::text, null::bigint;
      return query select 'def', f.def, k.version from unnest(keys, versions) k(key, version)
        join subscription_definition f on f.key = k.key and f.session = own order by f.def collate "C";
    else
      own := null; -- another's is woken
    end if;
  end if;
  if wakes then
    return query select 'task', w.taskid, w.startat
      from subscription_wake(keys, versions, lists, departed, classes, ids, own, minute, start, queue) w;
  end if;
end $$;
comment on function stampd.subscription_match(text[], text[], text, boolean, bigint, bigint, int, text, boolean) is
  'For commits of workers, behind all that writes documents and members: which definitions of the session `own` the commit matches '
  '(rows own, def); with `wakes` it wakes the others (rows task).';

-- For all other changes of documents: at the end of the transaction, when members of collections are right.
create function stampd.subscription_follow() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
declare
  keys     text[];
  versions bigint[];
  lists    text[];
  departed text[];
  queue    int;
begin
  if current_setting('stampd.matched', true) = 'on' or not (select s.wakes from schema s where s.one) then
    return null;
  end if;
  perform subscription_lock(false);
  select o.qn into queue from task_operation o where o.opname = 'push';
  select array_agg(k.key), array_agg(k.version), array_agg(k.written), array_agg(k.departed) into keys, versions, lists, departed
    from subscription_keys(array[new.class], array[new.id]) k;
  perform subscription_wake(keys, versions, lists, departed, array[new.class], array[new.id], null, present_minute(), stamp_now(),
                            coalesce(queue, 3));
  if found then
    perform task_notify(0);
  end if;
  return null;
end $$;
comment on function stampd.subscription_follow() is 'Trigger: changes that no worker made wake sessions too.';
create constraint trigger subscription_follow after insert or update on stampd.doc deferrable initially deferred
  for each row when (current_setting('stampd.worker', true) is distinct from 'on') execute function stampd.subscription_follow();

-- --- a session's subscription ---

create function stampd.subscription_client(address text) returns bigint language sql stable set search_path = stampd, pg_temp as $$
  select ('x' || left(encode(sha256(convert_to(s.secret || address, 'UTF8')), 'hex'), 16))::bit(64)::bigint
    from namespace s where s.one and address <> ''
$$;
comment on function stampd.subscription_client(text) is 'What stands for the address of a client in column client.';

create function stampd.subscription_return(of_session text, minute bigint) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  update subscription s set until = greatest(s.until, s.requested), trial_from = null, requested = null
    where s.session in (select o.session from subscription o where o.session = of_session and o.trial_from < minute and o.until > minute
                          for no key update skip locked)
$$;
comment on function stampd.subscription_return(text, bigint) is
  'The session has shown in a later minute that it is used: its subscription lasts as long as was requested.  Nothing when it is being changed.';

create function stampd.subscription_show(of_session text, minute bigint)
  returns table (def text, version bigint, until bigint, endpoint text, p256dh text, auth text, context text, trial int)
  language plpgsql stable set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  return query select null::text, s.version, s.until, s.endpoint, s.p256dh, s.auth, s.context,
      case when s.trial_from is null then 0 when s.trial_from < minute then 2 else 1 end
    from subscription s where s.session = of_session and s.until > minute;
  if found then
    return query select f.def, null::bigint, null::bigint, null::text, null::text, null::text, null::text, null::int
      from subscription_definition f where f.session = of_session order by f.def collate "C";
  end if;
end $$;
comment on function stampd.subscription_show(text, bigint) is
  'A row of the subscription, then one a definition; none: there is none.  trial 1: its session has not returned yet, 2: it may now.';

create function stampd.subscription_put(of_session text, minute bigint, present bigint, lifetime bigint, may_create boolean, is_whole boolean,
                                keys text[], defs text[], drops text[], most bigint, most_held bigint, most_woken bigint,
                                push text[], with_context boolean, of_context text, address text, trial_minutes bigint, mosts bigint[],
                                of_account text default null, of_credential text default null, by_rules boolean default false)
  returns table (def text, version bigint, until bigint, endpoint text, p256dh text, auth text, context text, trial int)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  held    subscription;
  counted bigint;
  weight  bigint;
  counts  subscription_count;
  is_new  boolean := false;
  is_more boolean;
  begins  boolean;
  was_woken boolean;
  ends    bigint;
  over    text;
begin
  loop
    select * into held from subscription s where s.session = of_session for no key update;
    exit when found;
    if not may_create then
      return;
    end if;
    insert into subscription (session, version, until) values (of_session, 0, 0) on conflict (session) do nothing;
    is_new := found;
  end loop;
  if held.until > minute and not subscription_is_of(held, of_account, subscription_put.by_rules) then
    if may_create then
      perform fail('ST027', '');
    end if;
    return;
  end if;
  was_woken := held.endpoint is not null;
  if held.until <= minute then
    if not may_create then
      return;
    end if;
    held.until := 0;
    held.account := coalesce(of_account, '');
    held.vouched := false;
    held.endpoint := null;
    held.p256dh := null;
    held.auth := null;
    held.context := null;
    held.requested := null;
    held.trial_from := case when trial_minutes > 0 then minute end;
  elsif held.trial_from < minute then
    held.until := greatest(held.until, held.requested);
    held.requested := null;
    held.trial_from := null;
  end if;
  if of_account is not null then
    held.credential := of_credential;
    held.by_rules := subscription_put.by_rules;
  end if;
  if held.until = 0 then
    delete from subscription_matched t where t.session = of_session;
  end if;
  if held.until = 0 or is_whole then
    delete from subscription_definition f where f.session = of_session;
  end if;
  delete from subscription_definition f using unnest(drops) d(key) where f.session = of_session and f.key = d.key;
  insert into subscription_definition as f (key, session, def) select k.key, of_session, k.def from unnest(keys, defs) k(key, def)
    order by k.key collate "C" on conflict (key, session) do update set def = excluded.def where f.def <> excluded.def;
  select count(*), coalesce(sum(octet_length(f.key) + octet_length(f.def)), 0) into counted, weight
    from subscription_definition f where f.session = of_session;
  if counted > most then
    perform fail('ST020', counted::text);
  end if;
  begins := held.until = 0;
  is_more := begins or counted > held.defs;
  if is_more then
    held.client := subscription_client(address);
  end if;
  if push is not null then
    held.endpoint := push[1];
    held.p256dh := push[2];
    held.auth := push[3];
  end if;
  if with_context then
    held.context := of_context;
  end if;
  ends := case when lifetime > 0 then minute + lifetime else greatest(held.until, held.requested, minute - lifetime) end;
  held.requested := case when held.trial_from is not null then ends end;
  update subscription s set version = case when held.version < present then present else version_above(held.version) end,
      until = least(ends, held.trial_from + trial_minutes), trial_from = held.trial_from, requested = held.requested, client = held.client,
      account = held.account, credential = held.credential, by_rules = held.by_rules, vouched = held.vouched,
      defs = counted, bytes = weight, endpoint = held.endpoint, p256dh = held.p256dh, auth = held.auth, context = held.context
    where s.session = of_session;
  was_woken := was_woken or held.endpoint is null;
  if is_more and held.client is not null then
    select case when count(*) > mosts[1] then 'ST021' when sum(s.defs) > mosts[2] then 'ST022' end into over
      from subscription s where s.client = held.client and s.until > minute;
    if over is not null then
      perform fail(over, '');
    end if;
  end if;
  if begins then
    select case
        when mosts[5] > 0 and held.client is not null and mosts[5] <
          (select count(*) from (select from subscription s where s.client = held.client and s.until > minute limit mosts[5] + 1) c) then 'ST030'
        when mosts[6] > 0 and held.account <> '' and mosts[6] <
          (select count(*) from (select from subscription s where s.account = held.account and s.account <> '' and s.until > minute limit mosts[6] + 1) a) then 'ST031'
        when mosts[7] > 0 and mosts[7] <
          (select count(*) from (select from subscription s where s.until > minute limit mosts[7] + 1) n) then 'ST032' end into over;
    if over is not null then
      perform fail(over, '');
    end if;
  end if;
  for attempt in 1 .. 2 loop
    select * into counts from subscription_count c where c.one;
    over := case when is_new and counts.held > most_held then 'ST007' when not was_woken and counts.woken > most_woken then 'ST008'
                 when is_more and counts.defs > mosts[3] then 'ST023' when is_more and counts.bytes > mosts[4] then 'ST024' end;
    exit when over is null;
    if attempt = 2 or purge_subscriptions() = 0 then
      perform fail(over, '');
    end if;
  end loop;
  perform subscription_lock(true);
  return query select * from subscription_show(of_session, minute);
end $$;
comment on function stampd.subscription_put(text, bigint, bigint, bigint, boolean, boolean, text[], text[], text[], bigint, bigint, bigint, text[], boolean,
  text, text, bigint, bigint[], text, text, boolean) is
  'Changes a subscription: all definitions replaced or some added, others dropped; push null: stays, {null,…}: none.  `lifetime`: the end '
  'is so many minutes from now; negative: as many at least.  A new one lasts `trial_minutes` (0: as requested) until its session returns in a later '
  'minute.  ST020: there would be more definitions than `most`, the detail says how many.  ST007, ST008: more than `most_held` '
  'subscriptions, than `most_woken` with an address; ST021, ST022: subscriptions, definitions of the client at `address` (empty: not '
  'counted), ST023, ST024: definitions of the namespace, their bytes, than `mosts` says in this order; ST030, ST031, ST032: a new one, and subscriptions of '
  'the client, of the account, of all (0: any number).  Those that have ended are purged for it.  ST027: it is another account''s.  Returns what subscription_show does; nothing: there is none and may_create is false.';

create function stampd.subscription_drop(of_session text, of_account text default null, by_rules boolean default false) returns void
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
begin
  perform from subscription s where s.session = of_session for update;
  if exists (select from subscription s where s.session = of_session and not subscription_is_of(s, of_account, subscription_drop.by_rules)) then
    return;
  end if;
  delete from subscription_definition f where f.session = of_session;
  delete from subscription_matched t where t.session = of_session;
  delete from subscription s where s.session = of_session;
end $$;
comment on function stampd.subscription_drop(text, text, boolean) is 'Ends a subscription, unless it is another account''s.';

create function stampd.purge_subscriptions(batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  ended text[];
begin
  select array_agg(o.session) into ended from (
    select s.session from subscription s where s.until <= present_minute() order by s.until limit batch for update skip locked) o;
  delete from subscription_definition f using unnest(ended) e(session) where f.session = e.session;
  delete from subscription_matched t using unnest(ended) e(session) where t.session = e.session;
  delete from subscription s using unnest(ended) e(session) where s.session = e.session;
  return coalesce(cardinality(ended), 0);
end $$;
comment on function stampd.purge_subscriptions(int) is
  'Deletes up to `batch` subscriptions that have ended.  Returns how many; call again until it returns 0.';

-- --- the task `push` ---

create function stampd.subscription_take(of_session text)
  returns table (taken bigint, def text, version bigint, id text, kind int, xid bigint)
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  present bigint;
begin
  perform subscription_lock(true);
  present := pg_current_xact_id()::text::bigint;
  update subscription_matched t set taken = present where t.session = of_session and t.taken = 0;
  delete from subscription_matched t where t.session = of_session and t.taken <> 0 and t.key <> 'w'
    and not exists (select from subscription_definition f where f.key = t.key and f.session = of_session); -- the session has dropped it
  return query select present, f.def, min(t.version), t.id, case t.key when 'w' then 2 else t.kind end, min(t.xid)::text::bigint
    from subscription_matched t join subscription_definition f on f.session = t.session and (f.key = t.key or t.key = 'w')
    where t.session = of_session group by f.def, t.id, case t.key when 'w' then 2 else t.kind end
    order by f.def collate "C", t.id, 5;
end $$;
comment on function stampd.subscription_take(text) is
  'Takes what was noted for the session, by a task that was claimed before: a commit that did not create another one is among it.  With '
  'what was taken before and not marked as sent.  kind 2: the sight of the account itself may have changed; then all its definitions.';

create function stampd.subscription_sent(of_session text, of_taken bigint) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  delete from subscription_matched t where t.session = of_session and t.taken between 1 and of_taken
$$;
comment on function stampd.subscription_sent(text, bigint) is 'Deletes what was taken then, or before: it has been sent.';

-- --- the switch ---

create function stampd.wake_sessions(wakes boolean) returns boolean
  language plpgsql volatile set search_path = stampd, pg_temp as $$
begin
  update schema s set wakes = wake_sessions.wakes, number = s.number + 1 where s.one and s.wakes <> wake_sessions.wakes;
  return found;
end $$;
comment on function stampd.wake_sessions(boolean) is
  'Switches the waking of sessions on or off; false: it was so already.  Commits of workers that do not know it yet are refused and '
  'run again.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.subscription_lock(boolean), stampd.subscription_keys(text[], text[]),
  stampd.subscription_relation_ends(text, text, text), stampd.subscription_sights(text[], text[]),
  stampd.subscription_wake(text[], bigint[], text[], text[], text[], text[], text, bigint, bigint, int),
  stampd.subscription_is_of(stampd.subscription, text, boolean),
  stampd.subscription_match(text[], text[], text, boolean, bigint, bigint, int, text, boolean), stampd.subscription_client(text),
  stampd.subscription_return(text, bigint), stampd.subscription_show(text, bigint),
  stampd.subscription_put(text, bigint, bigint, bigint, boolean, boolean, text[], text[], text[], bigint, bigint, bigint, text[], boolean, text, text, bigint, bigint[], text, text, boolean),
  stampd.subscription_drop(text, text, boolean), stampd.purge_subscriptions(int), stampd.subscription_take(text), stampd.subscription_sent(text, bigint) to stampd;
