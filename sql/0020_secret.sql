-- A secret of each namespace: cursors and tokens are sealed with it, so that nobody reads or makes one.

alter table stampd.space add column secret text not null
  default encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex');
comment on column stampd.space.secret is
  'Seals what clients keep and bring back: cursors, tokens of collections, ids of live events.  With another one all of those are refused.';
