-- Which host serves the databases (hosts = pair; doc/explanation/freshness.md): the row of z decides for all namespaces of the
-- PostgreSQL cluster; that of another namespace is never asked.

create table stampd.lease (
  one          boolean primary key default true check (one),
  installation bigint,                        -- of the host that serves, as its segment has it; null: nobody
  holder       text not null default '',      -- its name, for administrators
  epoch        bigint not null default 0,     -- takes so far
  beat         bigint not null default 0,     -- changes with each sign of life
  limit_ms     bigint not null default 5000,  -- for so long after a beat was sent, memory proves what it answers
  since        timestamptz
) with (fillfactor = 50);
comment on table stampd.lease is
  'In z: the host of a pair that serves all databases, by its installation, and its beats.  Take it by ending the server, never by hand.';

insert into stampd.lease default values;
grant select, update on stampd.lease to stampd;
