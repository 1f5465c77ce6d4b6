-- Volumes: how many documents each class has, and the bytes of their items (v1) and attachments (v2), without reading them.
--
-- Each change of a document that changes a sum adds a row with the difference, in its own transaction: commits never wait for each other.
-- The keeper folds these rows into one for each class, so a reader adds up the classes and what was written since the last round.  A
-- reader sees a row or what it was folded into, never both or none, so the sums are exact at each instant.

create table stampd.volume (
  class     text collate "C" primary key,
  documents bigint not null,
  v1        bigint not null,
  v2        bigint not null
) with (fillfactor = 50);
comment on table stampd.volume is 'The sums of a class, but for the rows of volume_change.';
grant select, insert, update, delete on stampd.volume to stampd;

create table stampd.volume_change (
  class     text collate "C" not null,
  documents int not null,
  v1        bigint not null,
  v2        bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_threshold = -1);
comment on table stampd.volume_change is 'By how much a change of a document has changed the sums of its class; the keeper folds it into volume.';
grant select, insert, update, delete on stampd.volume_change to stampd;

create function stampd.volume_follow() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  -- A deleted document has no bytes, whatever its row says.
  if tg_op = 'INSERT' then
    insert into stampd.volume_change values (new.class, 1, coalesce(new.v1, 0), coalesce(new.v2, 0));
  elsif tg_op = 'DELETE' then
    insert into stampd.volume_change values (old.class, -1, -coalesce(old.v1, 0), -coalesce(old.v2, 0));
  else
    insert into stampd.volume_change values (new.class, (new.ctime <> 0)::int - (old.ctime <> 0)::int,
      case when new.ctime <> 0 then coalesce(new.v1, 0) else 0 end - case when old.ctime <> 0 then coalesce(old.v1, 0) else 0 end,
      case when new.ctime <> 0 then coalesce(new.v2, 0) else 0 end - case when old.ctime <> 0 then coalesce(old.v2, 0) else 0 end);
  end if;
  return null;
end $$;
comment on function stampd.volume_follow() is 'Trigger on documents: adds a row to volume_change.';
create trigger volume_born after insert on stampd.doc
  for each row when (new.ctime <> 0) execute function stampd.volume_follow();
create trigger volume_moved after update of ctime, v1, v2 on stampd.doc
  for each row when (old.v1 is distinct from new.v1 or old.v2 is distinct from new.v2 or (old.ctime = 0) <> (new.ctime = 0)) execute function stampd.volume_follow();
create trigger volume_gone after delete on stampd.doc
  for each row when (old.ctime <> 0) execute function stampd.volume_follow();

create function stampd.volume_empty() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  delete from volume;
  delete from volume_change;
  return null;
end $$;
comment on function stampd.volume_empty() is 'Trigger: no documents, no volumes.';
create trigger volume_emptied after truncate on stampd.doc for each statement execute function stampd.volume_empty();

create function stampd.volumes() returns table (class text, documents bigint, v1 bigint, v2 bigint)
  language sql stable set search_path = stampd, pg_temp as $$
  select s.class, coalesce(sum(s.documents), 0)::bigint, coalesce(sum(s.v1), 0)::bigint, coalesce(sum(s.v2), 0)::bigint
    from (select * from volume union all select * from volume_change) s
    group by grouping sets ((), (s.class)) having grouping(s.class) = 1 or sum(s.documents) <> 0
$$;
comment on function stampd.volumes() is
  'The documents of each class and the sums of their v1 and v2, at one instant; the row without a class has those of the namespace.';

create function stampd.volumes_counted() returns table (class text, documents bigint, v1 bigint, v2 bigint)
  language sql stable set search_path = stampd, pg_temp as $$
  select d.class, count(*), coalesce(sum(d.v1), 0)::bigint, coalesce(sum(d.v2), 0)::bigint from doc d where d.ctime <> 0
    group by grouping sets ((), (d.class))
$$;
comment on function stampd.volumes_counted() is 'What volumes() returns, by reading all documents: `stampctl verify` compares both.';

create function stampd.volumes_fold(batch int) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
declare
  folded bigint;
begin
  -- Alone: nobody else deletes these rows, and none is ever changed.
  if not pg_try_advisory_xact_lock(hashtextextended('stampd volumes', 0)) then
    return 0;
  end if;
  with gone as (
    delete from volume_change c where c.ctid = any (array(select l.ctid from volume_change l limit batch)) returning c.*
  ), sums as (
    select g.class, sum(g.documents)::bigint as documents, sum(g.v1)::bigint as v1, sum(g.v2)::bigint as v2, count(*) as rows
      from gone g group by g.class
  ), kept as (
    insert into volume as v (class, documents, v1, v2) select s.class, s.documents, s.v1, s.v2 from sums s order by s.class
      on conflict (class) do update set documents = v.documents + excluded.documents, v1 = v.v1 + excluded.v1, v2 = v.v2 + excluded.v2
      returning 1)
  select coalesce(sum(s.rows), 0) into folded from sums s;
  delete from volume v where v.documents = 0 and v.v1 = 0 and v.v2 = 0;
  return folded;
end $$;
comment on function stampd.volumes_fold(int) is 'Folds up to `batch` rows of volume_change.  Returns how many; call again until 0.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.volumes(), stampd.volumes_counted(), stampd.volumes_fold(int), stampd.volume_follow(), stampd.volume_empty() to stampd;
