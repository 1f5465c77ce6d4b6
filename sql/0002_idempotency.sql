-- Answers kept under an Idempotency-Key.

create table stampd.once (
  account   text collate "C" not null,
  key       text collate "C" not null,
  digest    text not null,
  mime      text not null,
  answer    bytea not null,
  version   bigint not null,
  at        bigint not null,
  standings text not null default '',
  primary key (account, key)
);
comment on table stampd.once is
  'Answers kept under an Idempotency-Key, each written by the commit of its operation.';
comment on column stampd.once.account is 'Account of the caller; empty: the request named none.';
comment on column stampd.once.digest is
  'SHA-256 of what was asked for: another request under the same key is refused.';
comment on column stampd.once.mime is 'Type of the answer.';
comment on column stampd.once.answer is 'What the work of the operation gave; what follows the commit is added anew.';
comment on column stampd.once.version is 'Version of the commit; 0: nothing was changed.';
comment on column stampd.once.at is 'Stamp of the moment of the commit, by the clock of the worker: the age of the row.';
comment on column stampd.once.standings is
  'How the documents that the operation looked at stood after the commit: JSON [[class, id, version]…]; null in place of the '
  'version: that of the commit; 0: it does not exist.  Empty: nobody asks for it.';
-- For the rows that are too old; rows are written once, so no update pays for it.
create index once_at on stampd.once (at);
grant select, insert, update, delete on stampd.once to stampd;

create function stampd.purge_once(older_than_stamp bigint, batch int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from once where ctid = any (array(
      select o.ctid from once o where o.at < older_than_stamp order by o.at limit batch for update skip locked))
    returning 1
  ) select count(*) from gone
$$;
comment on function stampd.purge_once(bigint, int) is
  'Forgets up to `batch` answers kept since before the stamp.  Returns how many; call again until it returns 0.  The server '
  'does the same little by little, with each answer that it keeps.';

revoke execute on all functions in schema stampd from public;
