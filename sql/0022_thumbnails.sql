-- Thumbnails of attachments that are images (doc/reference/attachments.md): which documents are done, and how far the sweep has come that
-- looks for others.
--
-- The thumbnails themselves are items P of their documents.  Nothing here is needed to read them: without these rows the task `thumbnail`
-- of each document runs once more and finds them.  Why a file has none is in its row (blob.thumbnail).

create table stampd.thumbnail_done (
  class   text collate "C" not null,
  id      text collate "C" not null,
  form    text not null,
  version bigint not null,
  primary key (class, id)
) with (fillfactor = 80);
comment on table stampd.thumbnail_done is 'Documents whose attachments have the thumbnails that can be made of them.';
comment on column stampd.thumbnail_done.form is 'The declaration under which that was so: names and sizes.';
comment on column stampd.thumbnail_done.version is 'The highest version of its items P then, removals included.';
grant select, insert, update, delete on stampd.thumbnail_done to stampd;

create table stampd.thumbnail_sweep (
  one    boolean primary key default true check (one),
  number bigint not null default 0,
  began  bigint not null default 0,
  class  text collate "C",
  id     text collate "C",
  check ((class is null) = (id is null))
);
comment on table stampd.thumbnail_sweep is 'Exactly one row: the last sweep for documents without thumbnails.';
comment on column stampd.thumbnail_sweep.number is 'Number of the schema under which it began.';
comment on column stampd.thumbnail_sweep.began is 'Stamp of its beginning; 0: the next one is due.';
comment on column stampd.thumbnail_sweep.class is 'With id: the document up to which it has come; null: it is over.';
insert into stampd.thumbnail_sweep default values;
grant select, update on stampd.thumbnail_sweep to stampd;

create function stampd.thumbnail_note(of_class text, of_id text, of_form text, of_version bigint) returns void
  language sql volatile set search_path = stampd, pg_temp as $$
  insert into thumbnail_done as t (class, id, form, version)
    select d.class, d.id, of_form, of_version from doc d where d.class = of_class and d.id = of_id
    on conflict (class, id) do update set form = excluded.form, version = excluded.version
      where t.form <> excluded.form or t.version <> excluded.version
$$;
comment on function stampd.thumbnail_note(text, text, text, bigint) is
  'Notes that all thumbnails of a document are made that can be, as of this version of its items P.';

create function stampd.thumbnail_page(of_class text, of_form text, last text, batch int) returns table (id text, is_due boolean)
  language plpgsql volatile set search_path = stampd, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  before text := last;
  newest bigint;
begin
  for place in 1 .. batch loop
    select r.id into before from blob_ref r where r.class = of_class and r.id > before order by r.class, r.id limit 1;
    if not found then
      return;
    end if;
    select coalesce(max(i.version), 0) into newest from item i where i.class = of_class and i.id = before and i.iclass = 'P';
    thumbnail_page.id := before;
    thumbnail_page.is_due := newest > 0 and not exists (select from thumbnail_done t
      where t.class = of_class and t.id = before and t.form = of_form and t.version >= newest);
    return next;
  end loop;
end $$;
comment on function stampd.thumbnail_page(text, text, text, int) is
  'Up to `batch` documents of the class that have or had an attachment, after this id, and whether thumbnails of it may be missing.';

create function stampd.thumbnail_sweep_due(most_waiting int) returns boolean
  language sql stable set search_path = stampd, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select (s.class is not null or s.number <> a.number or s.began < stamp_of(now() - interval '1 day'))
    and position('"thumbnails":{' in a.content) > 0
    and (select count(*) from (select from taskqueue t where t.opname = 'thumbnail' and t.starttime is null and t.resource is not null
      limit most_waiting) w) < most_waiting
    from thumbnail_sweep s cross join schema a where s.one and a.one
$$;
comment on function stampd.thumbnail_sweep_due(int) is
  'Must documents without thumbnails be looked for: once a day, after each change of the schema, and when a sweep is to be continued?  '
  'Not while so many tasks `thumbnail` wait.';

create function stampd.thumbnail_again() returns void language sql volatile set search_path = stampd, pg_temp as $$
  update blob b set thumbnail = null where b.thumbnail is not null;
  delete from thumbnail_done;
  update thumbnail_sweep s set number = 0, began = 0, class = null, id = null where s.one
$$;
comment on function stampd.thumbnail_again() is
  'Has all documents visited again, and images tried again of which no thumbnails could be made: after a change of the limits, or of the '
  'program that makes them.';

-- --- documents that are gone ---

create function stampd.thumbnail_forget() returns trigger language plpgsql set search_path = stampd, pg_temp as $$
begin
  if tg_op = 'TRUNCATE' then
    truncate thumbnail_done;
  else
    delete from thumbnail_done t where t.class = old.class and t.id = old.id;
  end if;
  return null;
end $$;
comment on function stampd.thumbnail_forget() is 'Trigger: of a document without a row nothing is noted.';
create trigger thumbnail_forget after delete on stampd.doc for each row execute function stampd.thumbnail_forget();
create trigger thumbnail_forget_all after truncate on stampd.doc for each statement execute function stampd.thumbnail_forget();

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.thumbnail_note(text, text, text, bigint), stampd.thumbnail_page(text, text, text, int),
  stampd.thumbnail_sweep_due(int), stampd.thumbnail_forget() to stampd;
