-- What administrators do to all documents of a namespace at once: a restore is made known, TRUNCATE is heard.

create function stampd.after_restore() returns bigint language plpgsql volatile set search_path = stampd, pg_temp
  set stampd.worker = 'on' as $$
declare
  present bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'documents are changed in READ COMMITTED only' using errcode = '25001';
  end if;
  lock table doc in exclusive mode; -- whoever commits meanwhile would be overlooked
  present := version_above(greatest((select max(d.version) from doc d), (select s.floor from space s where s.one)));
  delete from item i where i.content is null;
  update doc d set version = present,
    ctime = case d.ctime when 0 then 0 else present end, dtime = case d.ctime when 0 then 0 else present end;
  update space set floor = present where one;
  perform pg_notify('stampd', 'all');
  return present;
end $$;
comment on function stampd.after_restore() is
  'After a restore: all documents begin a new life now, so that no holder of a copy, whatever it has seen since the backup, '
  'takes it for a good one; the floor rises; running servers forget their proofs.  Returns the version of it.  The clock must '
  'be right.  Run vacuum afterwards: each row has been written anew.';

create function stampd.tell_truncation() returns trigger language plpgsql as $$
begin
  if tg_when = 'BEFORE' then
    update stampd.space set floor = greatest(floor, (select max(d.version) from stampd.doc d)) where one;
  else
    perform pg_notify('stampd', 'all');
  end if;
  return null;
end $$;
comment on function stampd.tell_truncation() is
  'Trigger: raises the floor over the versions of all documents, and tells the channel stampd that all of them have changed.';

create trigger floor_over_truncation before truncate on stampd.doc
  for each statement execute function stampd.tell_truncation();
create trigger tell_truncation after truncate on stampd.doc
  for each statement execute function stampd.tell_truncation();
comment on trigger floor_over_truncation on stampd.doc is
  'Documents that are born after TRUNCATE are newer than those of the same name that were there before.';
comment on trigger tell_truncation on stampd.doc is 'TRUNCATE, of doc and item together, is heard by all servers.';

revoke execute on function stampd.after_restore(), stampd.tell_truncation() from public;
