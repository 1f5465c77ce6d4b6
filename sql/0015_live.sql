-- Live events: who listens to a collection is told when it becomes another one as a whole.

create function stampd.tell_collection() returns trigger language plpgsql as $$
begin
  perform pg_notify('stampd', 'all'); -- as with doc: anything may have changed; many in one transaction are one
  return null;
end $$;
comment on function stampd.tell_collection() is 'Trigger: tells the channel stampd that a collection is declared, filled or dropped.';
revoke execute on function stampd.tell_collection() from public;

create trigger tell_collection after insert or delete or update of is_ready on stampd.collection
  for each row execute function stampd.tell_collection();
