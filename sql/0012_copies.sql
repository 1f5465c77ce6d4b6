-- Deferred copies: items that are replicated to the documents that hold them.  doc/reference/copies.md describes the model.

create table stampd.copy_due (
  class  text collate "C" not null,
  id     text collate "C" not null,
  iclass text collate "C" not null,
  key    text collate "C" not null,
  number bigint not null,
  primary key (class, id, iclass, key)
) with (fillfactor = 80);
comment on table stampd.copy_due is
  'Items that have changed, or are no more, and whose copies in other documents are older; a task of their document copies them.';
comment on column stampd.copy_due.number is 'Another one for each change: a task that has copied a state deletes the note of that state only.';
grant select, insert, update, delete on stampd.copy_due to stampd;

create function stampd.copy_again(class text, id text) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp as $$
#variable_conflict use_column
declare
  noted bigint;
begin
  insert into copy_due as q (class, id, iclass, key, number)
    select i.class, i.id, i.iclass, i.key, stamp_now() from item i
      where i.class = copy_again.class and i.id = copy_again.id order by i.iclass, i.key
    on conflict (class, id, iclass, key) do update set number = version_above(q.number);
  get diagnostics noted = row_count;
  if noted > 0 then
    perform task_create('copy', json_build_object('c', copy_again.class, 'id', copy_again.id)::text,
                        info => copy_again.class || '.' || copy_again.id, resource => copy_again.class || '.' || copy_again.id);
  end if;
  return noted;
end $$;
comment on function stampd.copy_again(text, text) is
  'Has all items of a document copied to the documents that the declarations name, deleted items included: after a change by SQL, or a '
  'declaration that came later.  Returns how many items are noted.';

create function stampd.clear_copies_due() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  truncate copy_due;
  return null;
end $$;
comment on function stampd.clear_copies_due() is 'Trigger: with all items gone, nothing of them is due.';
create trigger clear_copies_due after truncate on stampd.item
  for each statement execute function stampd.clear_copies_due();

revoke execute on all functions in schema stampd from public;
