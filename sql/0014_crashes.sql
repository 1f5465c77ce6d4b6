-- Tokens of collections after a crash of PostgreSQL.
--
-- A token says up to which number of a transaction its holder knows a collection.  PostgreSQL gives numbers again of which it
-- had written nothing to the disk when it crashed: those of transactions that were undone just before.  A token that is beyond
-- them would miss what is done under them now.  So tokens are good for one life of the server: what is not logged is empty
-- after a crash, and on a standby that takes over.

create unlogged table stampd.since_crash (
  one  boolean primary key default true check (one),
  mark bigint not null default (random() * 9007199254740991)::bigint
);
comment on table stampd.since_crash is 'One row, gone after a crash of PostgreSQL: then a worker makes another.';
comment on column stampd.since_crash.mark is 'With the life of table space: tokens of collections are good for as long as both stay.';
insert into stampd.since_crash default values;
grant select, insert on stampd.since_crash to stampd;
