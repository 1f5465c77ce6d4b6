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

-- How far a standby is (setting replica; doc/explanation/freshness.md): a row of each host that reads one, in the database that it reads.

create table stampd.heartbeat (
  installation bigint primary key, -- of the host, as its segment has it
  nonce        bigint not null,    -- of the process that writes it, and of the history that it knows
  sent_ms      bigint not null,    -- by the clock of the host, which counts from its start
  at           timestamptz not null default now()
) with (fillfactor = 50);
comment on table stampd.heartbeat is
  'A standby that shows a row has all that was acknowledged before the row was sent: changed once a second while a host reads its standbys.';
grant select, insert, update, delete on stampd.heartbeat to stampd;
