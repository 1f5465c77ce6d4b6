-- Sight: who has lost, or gained, which document by its contents, where access rules decide.  doc/explanation/sight.md describes the
-- model: a synchronisation sends the departure of a document to the callers that could see it, and to nobody else.
--
-- Triggers of table item compare the principals in its content before and after each change, whoever writes it.  They are disabled
-- until a worker declares the places where the rules of the namespace look, so other namespaces pay nothing.

-- --- where rules look ---

create table stampd.sight_rules (
  one    boolean primary key default true check (one),
  mark   bigint not null default 0,
  schema bigint not null default 0,
  since  xid8,
  floor  xid8 not null default '0'
);
insert into stampd.sight_rules default values;
comment on table stampd.sight_rules is 'Exactly one row: the access rules whose places are followed.';
comment on column stampd.sight_rules.mark is 'Version of their item in the namespace z; 0: none, -1: they cannot be followed now.';
comment on column stampd.sight_rules.schema is 'Number of the schema at that time: another release may have other contents.';
comment on column stampd.sight_rules.since is 'This transaction and all later ones follow them; null: that is not certain yet.';
comment on column stampd.sight_rules.floor is 'Rows of table sight of this transaction and older ones may have been purged.';

create table stampd.sight_place (
  class  text collate "C" not null,
  iclass text collate "C" not null,
  kind   text not null check (kind in ('owner', 'members', 'team')),
  member text not null default '',
  roles  text[] not null,
  is_of_team boolean not null,
  primary key (class, iclass, kind, member)
);
comment on table stampd.sight_place is 'The items by which rules find owners, members and teams of documents.';
comment on column stampd.sight_place.member is 'The member of the content; of members empty, as their keys are what counts.';
comment on column stampd.sight_place.roles is 'Of members: the roles that rules name.';
comment on column stampd.sight_place.is_of_team is
  'Other documents depend on these members, perhaps since before this one was born: they are recorded from birth on.';

create table stampd.sight (
  class        text collate "C" not null,
  id           text collate "C" not null,
  principal    text collate "C" not null,
  version      bigint not null,
  xid          xid8 not null,
  is_lost      boolean not null,
  gained       bigint,
  lost         xid8,
  lost_version bigint,
  primary key (class, id, principal)
) with (fillfactor = 90);
comment on table stampd.sight is 'Principals that documents have lost or gained since their birth.';
comment on column stampd.sight.principal is
  'o:ACCOUNT the owner, m:ACCOUNT a member, r:BYTES:ACCOUNT:ROLE a member with a role (BYTES: those of the account), t:ID a team.';
comment on column stampd.sight.version is 'Version of the document when the principal was last lost or gained.';
comment on column stampd.sight.xid is 'The transaction of that.';
comment on column stampd.sight.gained is 'Version of the document when it was last gained; null: at birth, or longer ago than rows are kept.';
comment on column stampd.sight.lost is 'The transaction that last took it away; it stays when the principal is gained again.';
-- What a caller has lost since a transaction, and whether its memberships have changed.  Its condition is
-- there for the same reason as that of member_changed.
create index sight_changed on stampd.sight (class, principal, xid, id) where principal is not null;
-- Purging, the oldest first.
create index sight_version on stampd.sight (class, version);
grant select on stampd.sight_rules, stampd.sight_place to stampd;
grant select, insert, update, delete on stampd.sight to stampd;

-- --- following the contents ---

-- In plpgsql, whose plans last as long as the session: a function in SQL is planned again in each transaction.
create function stampd.sight_principals(of_class text, of_iclass text, of_key text, of_content text, is_raw boolean) returns text[]
  language plpgsql stable as $$
declare
  place stampd.sight_place;
  value json;
  found text[] := '{}';
begin
  for place in select * from stampd.sight_place s where s.class = of_class and s.iclass = of_iclass loop
    if place.kind = 'members' then
      continue when of_key = '';
      found := found || ('m:' || of_key);
      if place.roles <> '{}' and not is_raw then
        value := stampd.export_object(of_content) -> 'role';
        if json_typeof(value) = 'string' and value #>> '{}' = any (place.roles) then
          found := found || ('r:' || octet_length(of_key) || ':' || of_key || ':' || (value #>> '{}'));
        end if;
      end if;
    elsif of_key = '' and not is_raw then
      value := stampd.export_object(of_content) -> place.member;
      if json_typeof(value) = 'string' and octet_length(value #>> '{}') between 1 and 255 then
        found := found || (case place.kind when 'owner' then 'o:' else 't:' end || (value #>> '{}'));
      end if;
    end if;
  end loop;
  return found;
end $$;
comment on function stampd.sight_principals(text, text, text, text, boolean) is 'The principals in an item, as the access rules find them.';

create function stampd.sight_write() returns trigger language plpgsql as $$
declare
  before text[] := '{}';
  after  text[] := '{}';
  held   stampd.doc;
begin
  perform from stampd.sight_place p where p.class = coalesce(new.class, old.class) and p.iclass = coalesce(new.iclass, old.iclass);
  if not found then
    return null;
  end if;
  if tg_op <> 'INSERT' and old.content is not null then
    before := stampd.sight_principals(old.class, old.iclass, old.key, old.content, old.raw);
  end if;
  if tg_op <> 'DELETE' and new.content is not null then
    after := stampd.sight_principals(new.class, new.iclass, new.key, new.content, new.raw);
  end if;
  if before = after then
    return null;
  end if;
  if before <> '{}' then
    -- A document that is deleted has the version of its deletion already.
    select * into held from stampd.doc d where d.class = old.class and d.id = old.id;
    insert into stampd.sight as s (class, id, principal, version, xid, is_lost, lost, lost_version)
      select old.class, old.id, p, coalesce(held.version, old.version), pg_current_xact_id(), true, pg_current_xact_id(),
             coalesce(held.version, old.version)
        from unnest(before) p where p <> all (after) order by p
      on conflict (class, id, principal) do update
        set version = excluded.version, xid = excluded.xid, is_lost = true, lost = excluded.lost, lost_version = excluded.lost_version;
  end if;
  if after <> '{}' then
    select * into held from stampd.doc d where d.class = new.class and d.id = new.id;
    if coalesce(held.ctime = new.version, true) and not exists (
        select from stampd.sight_place t where t.class = new.class and t.iclass = new.iclass and t.is_of_team) then
      -- At birth: only what an earlier incarnation has lost is of interest.
      update stampd.sight s set version = new.version, xid = pg_current_xact_id(), is_lost = false, gained = new.version
        where s.class = new.class and s.id = new.id and s.principal = any (after) and s.is_lost;
    else
      insert into stampd.sight as s (class, id, principal, version, xid, is_lost, gained)
        select new.class, new.id, p, new.version, pg_current_xact_id(), false, new.version
          from unnest(after) p where p <> all (before) order by p
        on conflict (class, id, principal) do update
          set version = excluded.version, xid = excluded.xid, is_lost = false, gained = excluded.gained;
    end if;
  end if;
  return null;
end $$;
comment on function stampd.sight_write() is
  'Trigger: records which principals a change of an item takes from its document and gives to it.';
create trigger sight_insert after insert on stampd.item
  for each row when (new.content is not null) execute function stampd.sight_write();
create trigger sight_update after update on stampd.item
  for each row when (old.content is distinct from new.content or old.raw <> new.raw) execute function stampd.sight_write();
create trigger sight_delete after delete on stampd.item
  for each row when (old.content is not null) execute function stampd.sight_write();
alter table stampd.item disable trigger sight_insert, disable trigger sight_update, disable trigger sight_delete;

create function stampd.sight_declare(of_mark bigint, places json) returns void
  language plpgsql volatile security definer set search_path = stampd, pg_temp set lock_timeout = '200ms' as $$
declare
  held    sight_rules;
  present schema;
begin
  perform pg_advisory_xact_lock(hashtextextended('stampd sight', 0));
  select * into held from sight_rules r where r.one;
  select * into present from schema s where s.one;
  if held.mark <> of_mark or held.schema <> present.number then
    delete from sight_place;
    insert into sight_place (class, iclass, kind, member, roles, is_of_team)
      select p.value ->> 0, p.value ->> 1, p.value ->> 2, p.value ->> 3,
             coalesce(array_agg(distinct r.role) filter (where r.role is not null), '{}'), bool_or((p.value ->> 5)::boolean)
        from json_array_elements(places) p left join lateral json_array_elements_text(p.value -> 4) r(role) on true
        group by 1, 2, 3, 4;
    if exists (select from sight_place p where '~' || p.class = any (string_to_array(present.building, ' '))) then
      update sight_rules set mark = -1 where one;
      return; -- contents of older releases are not what they are judged by: until the class is rewritten nothing is certain
    end if;
    update sight_rules set mark = of_mark, schema = present.number, since = null where one;
    if exists (select from pg_catalog.pg_trigger t where t.tgrelid = 'item'::regclass and t.tgname ~ '^sight_' and t.tgenabled = 'D') then
      alter table item enable trigger sight_insert, enable trigger sight_update, enable trigger sight_delete;
    end if;
  elsif held.since is null then
    -- The declaration is committed: of all transactions that began to write before it, the numbers are lower.
    update sight_rules set since = pg_snapshot_xmax(pg_current_snapshot()) where one;
  end if;
end $$;
comment on function stampd.sight_declare(bigint, json) is
  'Declares the places of the rules with this mark, [[class, class of items, kind, member, roles, is of a team]…]; called again, in a '
  'later transaction, it records since when they are followed.';

-- --- what has become of a caller's sight ---

create function stampd.sight_changes(of_class text, start xid8, account text, own text[], team_class text, team_members text,
    in_teams text[], watched text[], most bigint)
  returns table (kind int, text text, number bigint, since bigint, floor bigint, has_changed_teams boolean) language sql stable rows 10 as $$
  with team as materialized (
    select i.id from stampd.item i
      where i.iclass = team_members and i.key = account and i.key <> '' and i.class = team_class and i.content is not null
        and stampd.sight_principals(i.class, i.iclass, i.key, i.content, i.raw) && in_teams
      limit most)
  select 0, null, case when r.schema = c.number then r.mark else -1 end, coalesce(r.since::text::bigint, 0), r.floor::text::bigint,
         exists (select from unnest(watched) w(principal) cross join lateral (
           select from stampd.sight s where s.class = team_class and s.principal = w.principal and s.xid >= start limit 1) s)
    from stampd.sight_rules r join stampd.schema c on c.one where r.one
  union all
  select 1, t.id, null, null, null, null from team t
  union all (
    select 2, o.id, max(o.lost_version), null, null, null
      from (select unnest(own) as principal union all select 't:' || t.id from team t) p
      cross join lateral (
        select s.id, s.lost_version from stampd.sight s
          where s.class = of_class and s.principal = p.principal and s.xid >= start and s.lost >= start limit most) o
      group by o.id limit most)
$$;
comment on function stampd.sight_changes(text, xid8, text, text[], text, text, text[], text[], bigint) is
  'What has become of the sight that an account has of a class by its own principals, since a transaction.  Rows of three kinds, at most '
  '`most` of each: 0 the state: the rules that are followed, since when, what may have been purged, and whether one of the watched principals was lost or '
  'gained in teams of the class; 1 the teams in which it has one of the principals; 2 documents that were lost.';

create function stampd.sight_written(of_class text, ids text[], hidden text[], start bigint, watched text[], account text, team_class text,
    team_members text) returns table (id text) language sql stable rows 10 as $$
  select u.id from unnest(ids, hidden) u(id, hidden)
    where exists (
        select from stampd.item i where i.class = of_class and i.id = u.id and i.iclass <> all (string_to_array(u.hidden, ' '))
          and mod(i.xmin::text::bigint - mod(start, 4294967296) + 4294967296, 4294967296) < 2147483648)
      or exists (
        select from stampd.sight s where s.class = of_class and s.id = u.id and s.xid >= start::text::xid8
          and (s.principal = any (watched) or (s.principal like 't:%' and exists (
            select from stampd.item t where t.class = team_class and t.id = substr(s.principal, 3) and t.iclass = team_members
              and t.key = account and t.content is not null))))
$$;
comment on function stampd.sight_written(text, text[], text[], bigint, text[], text, text, text) is
  'Those of the documents in which an item was written since a transaction, other than of the hidden classes (joined by blanks), or that lost or '
  'gained a watched principal, or a team of the account.';

create function stampd.sight_since(of_class text, ids text[], account text, principals text[]) returns table (id text, version bigint)
  language sql stable rows 10 as $$
  select d.id, min(coalesce(s.gained, d.ctime))
    from stampd.docs_of(of_class, ids) d
    join stampd.sight_place p on p.class = of_class and d.ctime <> 0
    cross join lateral (
      select i.* from stampd.item i where i.class = of_class and i.id = d.id and i.iclass = p.iclass
        and i.key = case p.kind when 'members' then account else '' end and i.content is not null offset 0) i
    cross join lateral unnest(stampd.sight_principals(i.class, i.iclass, i.key, i.content, i.raw)) o(principal)
    left join stampd.sight s on s.class = of_class and s.id = d.id and s.principal = o.principal
    where o.principal = any (principals)
    group by d.id
$$;
comment on function stampd.sight_since(text, text[], text, text[]) is
  'Those of the documents that have one of the principals now, with the version since which they have had it.';

create function stampd.sight_had(of_class text, ids text[], versions bigint[], principals text[]) returns setof bigint
  language sql stable rows 10 set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
  select u.n - 1 from unnest(ids, versions) with ordinality u(id, version, n)
    where exists (select from stampd.sight s where s.class = of_class and s.id = u.id and s.principal = any (principals)
      and s.lost_version >= u.version and coalesce(s.gained, 0) < u.version)
$$;
comment on function stampd.sight_had(text, text[], bigint[], text[]) is
  'Which of the documents, by their places from 0, had one of the principals at these versions and have lost it since.';

-- --- upkeep ---

create function stampd.purge_sights(older_than_stamp bigint, batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  of_class text;
  purged   bigint := 0;
  removed  bigint;
  highest  xid8;
  limits   constant jsonb := zombie_limits();
begin
  loop
    select min(s.class) into of_class from sight s where s.class > coalesce(of_class, '');
    exit when of_class is null or purged >= batch;
    with old as (
      select s.id, s.principal from sight s
        where s.class = of_class and s.version < coalesce((limits ->> of_class)::bigint, older_than_stamp)
        order by s.version limit batch - purged for update skip locked
    ), gone as (
      delete from sight s using old o where s.class = of_class and s.id = o.id and s.principal = o.principal returning s.xid
    ) select count(*), max(g.xid) into removed, highest from gone g;
    update sight_rules set floor = highest where one and floor < highest;
    purged := purged + removed;
  end loop;
  return purged;
end $$;
comment on function stampd.purge_sights(bigint, int) is
  'Purges up to `batch` rows of table sight that are older than the stamp, of classes with zombieDays older than so many days.  '
  'Returns how many; call again until it returns 0.  Holders of older tokens get their collections complete.';

create function stampd.empty_sight() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  truncate sight;
  return null;
end $$;
comment on function stampd.empty_sight() is 'Trigger: with all documents gone, nobody sees any; tokens are those of another epoch.';
create trigger empty_sight after truncate on stampd.doc
  for each statement execute function stampd.empty_sight();

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.sight_principals(text, text, text, text, boolean), stampd.sight_declare(bigint, json),
  stampd.sight_changes(text, xid8, text, text[], text, text, text[], text[], bigint),
  stampd.sight_written(text, text[], text[], bigint, text[], text, text, text), stampd.sight_since(text, text[], text, text[]),
  stampd.sight_had(text, text[], bigint[], text[]) to stampd;
