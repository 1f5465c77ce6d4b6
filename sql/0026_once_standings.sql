-- A request that is sent again learns the versions of its documents too.  Workers of the release before write rows without.

alter table stampd.once add column standings text not null default '';
comment on column stampd.once.standings is
  'How the documents that the operation looked at stood after the commit: JSON [[class, id, version]…]; null in place of the '
  'version: that of the commit; 0: it does not exist.  Empty: nobody asks for it.';
