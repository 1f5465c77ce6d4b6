-- Answers kept under an Idempotency-Key.

create table stampd.idempotency (
  account   text collate "C" not null,
  key       text collate "C" not null,
  digest    text not null,
  mime      text not null,
  answer    bytea not null,
  version   bigint not null,
  at        bigint not null,
  versions_after text not null default '',
  primary key (account, key)
);
comment on table stampd.idempotency is
  'Answers kept under an Idempotency-Key, each written by the commit of its operation.';
comment on column stampd.idempotency.account is 'Account of the caller; empty: the request named none.';
comment on column stampd.idempotency.digest is
  'SHA-256 of the request: another one under the same key is refused.';
comment on column stampd.idempotency.mime is 'Type of the answer.';
comment on column stampd.idempotency.answer is 'The result of the operations work; what follows the commit is added anew.';
comment on column stampd.idempotency.version is 'Version of the commit; 0: nothing was changed.';
comment on column stampd.idempotency.at is 'Stamp of the moment of the commit, by the clock of the worker: the age of the row.';
comment on column stampd.idempotency.versions_after is
  'The versions of the documents that the operation read, after the commit: JSON [[class, id, version]…]; null in place of the '
  'version: that of the commit; 0: it does not exist.  Empty: no operation needs it.';
-- For the rows that are too old; rows are never updated, so no update pays for it.
create index idempotency_at on stampd.idempotency (at);
grant select, insert, update, delete on stampd.idempotency to stampd;

create function stampd.purge_idempotency(older_than_stamp bigint, batch int default 1000) returns bigint
  language sql volatile set search_path = stampd, pg_temp as $$
  with gone as (
    delete from idempotency where ctid = any (array(
      select o.ctid from idempotency o where o.at < older_than_stamp order by o.at limit batch for update skip locked))
    returning 1
  ) select count(*) from gone
$$;
comment on function stampd.purge_idempotency(bigint, int) is
  'Purges up to `batch` answers kept since before the stamp.  Returns how many; call again until it returns 0.  The server '
  'does the same little by little, with each answer that it keeps.';

revoke execute on all functions in schema stampd from public;
