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
  'Keyed digest of the request: another one under the same key is refused.';
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

-- --- spools ---
--
-- Requests that stamp-forward has brought from a spool: each name, of series and number, is stored by the commit that creates its task.

create table stampd.spool_series (
  account   text collate "C" not null,
  series    text collate "C" not null,
  forgotten bigint not null default 0,
  created   bigint not null,
  primary key (account, series)
);
comment on table stampd.spool_series is 'The series of numbers of spools that have been forwarded.';
comment on column stampd.spool_series.account is 'Account of the forwarder; empty: the administrator.';
comment on column stampd.spool_series.series is '128 random bits that a spool has drawn, as 32 digits.';
comment on column stampd.spool_series.forgotten is
  'Of records up to this number, those without a row in spool_record are not known any more: they are refused.';
comment on column stampd.spool_series.created is 'Stamp of its first record.';
create table stampd.spool_record (
  account  text collate "C" not null,
  series   text collate "C" not null,
  sequence bigint not null,
  digest   text not null,
  at       bigint not null,
  primary key (account, series, sequence)
);
comment on table stampd.spool_record is 'Records of spools of which tasks were made; kept for spool_s.';
comment on column stampd.spool_record.sequence is 'Number of the record in its spool.';
comment on column stampd.spool_record.digest is 'Keyed digest of the record: another one under the same name is of a copy that has diverged.';
comment on column stampd.spool_record.at is 'Stamp of the commit.';
create index spool_record_at on stampd.spool_record (at);
grant select, insert, update, delete on stampd.spool_series, stampd.spool_record to stampd;

create function stampd.spool_purge(older_than_stamp bigint, batch int default 1000) returns bigint
  language plpgsql volatile set search_path = stampd, pg_temp
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  purged bigint := 0;
  one record;
begin
  -- One at a time: it locks rows of several series.
  if not pg_try_advisory_xact_lock(hashtextextended('stampd purge of spools', 0)) then
    return 0;
  end if;
  for one in select r.account, r.series, r.sequence from spool_record r where r.at < older_than_stamp order by r.at limit batch loop
    delete from spool_record r where r.account = one.account and r.series = one.series and r.sequence = one.sequence;
    update spool_series s set forgotten = one.sequence
      where s.account = one.account and s.series = one.series and s.forgotten < one.sequence;
    purged := purged + 1;
  end loop;
  return purged;
end $$;
comment on function stampd.spool_purge(bigint, int) is
  'Forgets up to `batch` records of spools stored before the stamp.  Returns how many; call again until it returns 0.  The server does '
  'the same little by little, with each batch of records that it stores.';

revoke execute on all functions in schema stampd from public;
grant execute on function stampd.spool_purge(bigint, int) to stampd;
