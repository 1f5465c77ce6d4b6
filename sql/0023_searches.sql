-- Named searches (doc/reference/searches.md): SQL of the administrator, declared in the schema, that callers run by its name.
--
-- A search "name" is two functions that stampctl schema apply makes.  q_name has the text, as a body that PostgreSQL has parsed: what it
-- reads and calls stands in pg_proc and is checked there (search_refusal).  q_name_run calls it, as the role stampd_search, to whom nothing
-- belongs, who cannot log in and may read the views below and nothing else: inside a function that is run as another role, PostgreSQL
-- refuses every change of the role.  search_ready() is asked before it runs.

create view stampd.documents with (security_barrier = true) as
  select d.class, d.id, d.version as v, d.ctime as ct
    from stampd.doc d
    where d.ctime <> 0 and d.class not in ('Account', 'Issuer', 'Login', 'Ticket')
      and not exists (select 1 from stampd.expiry e
        where e.class = d.class and e.id = d.id and e.until <= floor(extract(epoch from now()) / 60)::bigint);
comment on view stampd.documents is 'For named searches: the documents that exist, but for those of the server''s own classes.';

create view stampd.items with (security_barrier = true) as
  select i.class, i.id, i.iclass as item, i.key, i.version as v,
      case when not i.raw then i.content::json end as value, case when i.raw then i.content end as text
    from stampd.item i
    where i.content is not null and i.class not in ('Account', 'Issuer', 'Login', 'Ticket')
      and not exists (select 1 from stampd.expiry e
        where e.class = i.class and e.id = i.id and e.until <= floor(extract(epoch from now()) / 60)::bigint);
comment on view stampd.items is 'For named searches: the items of these documents, their contents as JSON or, of raw ones, as text.';

create function stampd.search_rights() returns void language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  view_name text;
begin
  if not exists (select 1 from pg_roles where rolname = 'stampd_search') then
    create role stampd_search nologin;
  end if;
  if not pg_has_role('stampd_search', 'member') then
    grant stampd_search to current_user; -- who makes its functions
  end if;
  grant usage on schema stampd to stampd_search;
  grant select on stampd.documents, stampd.items to stampd_search;
  grant execute on function stampd.field_text(text), stampd.field_text_long(text), stampd.field_folded(text),
    stampd.text_query(regconfig, text) to stampd_search;
  for view_name in select c.relname from pg_class c
      where c.relnamespace = 'stampd'::regnamespace and c.relkind = 'v' and c.relname ~ '^item_[A-Z][A-Za-z0-9]*_[A-Z]'
        and c.relname !~ '^item_(Account|Issuer|Login|Ticket)_' loop
    execute format('grant select on stampd.%I to stampd_search', view_name);
  end loop;
end $$;
comment on function stampd.search_rights() is
  'Makes the role that named searches run as where it is missing, and gives it what it may read: called with each declaration.';

create function stampd.search_drop() returns void language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  made text;
begin
  for made in select format('stampd.%I(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) from pg_proc p
      where p.pronamespace = 'stampd'::regnamespace and p.proname ~ '^q_[A-Za-z][A-Za-z0-9]*(_run)?$'
      order by length(p.proname) desc loop
    execute 'drop function ' || made;
  end loop;
end $$;
comment on function stampd.search_drop() is 'Removes the functions of all named searches, which are made again with the new declaration.';

create function stampd.search_refusal(of_name text) returns text language sql stable set search_path = pg_catalog, pg_temp as $$
  with body as (select p.prosqlbody::text as tree from pg_proc p where p.pronamespace = 'stampd'::regnamespace and p.proname = of_name),
  relations as (
    select distinct m[1]::oid as oid from body, regexp_matches(tree, ':relid ([0-9]+)', 'g') m where m[1] <> '0'),
  functions as (
    select m[1]::oid as oid from body, regexp_matches(tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([0-9]+)', 'g') m
    union select o.oprcode from body, regexp_matches(tree, ':(?:opno|eqop|sortop|aggsortop) ([0-9]+)', 'g') m
      join pg_operator o on o.oid = m[1]::oid)
  select coalesce(
    (select 'A body that PostgreSQL has parsed is expected.' where not exists (select 1 from body where tree is not null)),
    (select 'It locks rows: a search only reads.' from body where tree ~ ':rowMarks \('),
    (select 'It changes rows: a search only reads.' from body where tree ~ ':hasModifyingCTE true'),
    (select format('It reads %s: the relations here are documents, items and the views item_Class_Item.', c.oid::regclass)
      from relations r join pg_class c on c.oid = r.oid
      where c.relnamespace <> 'stampd'::regnamespace or c.relkind <> 'v' or not has_table_privilege('stampd_search', c.oid, 'select')
      order by c.relname limit 1),
    (select format('It calls %s: functions that only compute are expected, as those of pg_catalog that are immutable or, but for those '
          'about the server and other relations, stable.', p.oid::regprocedure)
      from functions f join pg_proc p on p.oid = f.oid
      where p.prosecdef or not (p.provolatile = 'i' or p.provolatile = 's' and p.pronamespace = 'pg_catalog'::regnamespace
        and p.proname !~ '^(pg_|has_|current_setting|row_security|txid_|inet_|version$|col_desc|obj_desc|shobj_|to_reg|ts_stat)|_to_xml')
      order by p.proname limit 1))
$$;
comment on function stampd.search_refusal(text) is
  'Why the body of the function of a named search is refused, one sentence; null: it only reads what it may, and only computes.';

create function stampd.search_ready(of_name text, of_number bigint) returns boolean language plpgsql stable
  set search_path = stampd, pg_temp as $$
begin
  if not exists (select 1 from schema s where s.one and s.number = of_number) then
    perform fail('ST004', 'schema');
  end if;
  -- A backup that is restored where the role is missing, or without owners, gives the function to another role.
  if not exists (select 1 from pg_proc p join pg_roles r on r.oid = p.proowner where p.pronamespace = 'stampd'::regnamespace
      and p.proname = 'q_' || of_name || '_run' and r.rolname = 'stampd_search' and not r.rolsuper) then
    perform fail('ST036', of_name);
  end if;
  return true;
end $$;
comment on function stampd.search_ready(text, bigint) is
  'Refuses a named search under another number of the schema, or whose function does not run as the role stampd_search.';

revoke execute on function stampd.search_rights(), stampd.search_drop(), stampd.search_refusal(text), stampd.search_ready(text, bigint)
  from public;
grant execute on function stampd.search_ready(text, bigint) to stampd;

do $$
begin
  -- One that sorts too much is to fail before the disk is full.
  execute format('alter role stampd in database %I set temp_file_limit = ''1GB''', current_database());
exception when insufficient_privilege then
  raise notice 'a superuser may run: alter role stampd in database % set temp_file_limit = ''1GB''', quote_ident(current_database());
end $$;
