-- Which subscriptions the administrator's key has declared: the others are told nothing while the namespace is closed.

alter table stampd.subs add column vouched boolean not null default false;
comment on column stampd.subs.vouched is
  'Declared or changed with the administrator''s key; only such a session gets push messages while the namespace is closed.';
-- What was declared before without an address of a client is the administrator's, or of a release that knew no clients.
update stampd.subs set vouched = true where client is null;
