/* Statements of collections, sight, subscriptions and copies, as statements_table.h describes. */

/* A page of a collection: $1 class, $2 name, $3 value; rows after transaction $4 and id $5; departures too
 * if $6; at most $7.  One row with its state, in the same snapshot as the others; and, without a
 * transaction, at most $10 members that expired after minute $8, up to $9, the present.  No epoch: the
 * database has crashed, COLLECTION_EPOCH begins another. */
STATEMENT(
    COLLECTION, "collection", 10,
    "select s.epoch # (select mark from since_crash where one), c.number, c.is_ready, c.floor::text::bigint,"
    " pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
    " pg_snapshot_xmax(pg_current_snapshot())::text::bigint, null::text, null::bigint, null::boolean"
    " from namespace s left join collection c on c.class = $1 and c.name = $2 where s.one"
    " union all"
    " select null, null, null, null, m.xid::text::bigint, null, m.id, m.version, m.is_gone from"
    " (select xid, id, version, has_left or coalesce(until <= $9, false) as is_gone from member"
    " where collection = (select number from collection where class = $1 and name = $2) and value = $3"
    " and (xid, id) > ($4::text::xid8, $5)"
    " and (not (has_left or coalesce(until <= $9, false)) or $6 = 'true')"
    " order by xid, id limit $7::bigint) m"
    " union all"
    " select null, null, null, null, null, null, m.id, m.version, true from"
    " (select id, version from member"
    " where collection = (select number from collection where class = $1 and name = $2) and value = $3"
    " and until is not null and not has_left and until > $8 and until <= $9"
    " order by until limit $10::bigint) m")

STATEMENT(COLLECTION_EPOCH, "collection_epoch", 0,
          "insert into since_crash default values on conflict do nothing")

/* All members of a collection, in the order in which they changed: $1 its number, $2 value, $3 the present
 * minute; $4 class, with the documents if $5: a row for each item, one row with nulls for a document
 * without items.  The session streams the rows, after COLLECTION in one snapshot. */
STATEMENT(
    COLLECTION_ALL, "collection_all", 5,
    "select m.id, m.version, d.version, d.ctime, d.dtime, i.iclass, i.key, i.version, i.content, i.raw from"
    " (select xid, id, version from member where collection = $1 and value = $2 and not has_left"
    " and (until is null or until > $3)) m"
    " left join lateral (select version, ctime, dtime from doc"
    " where class = $4 and id = m.id and $5 = 'true' limit 1) d on true"
    " left join lateral (select iclass, key, version, content, raw from item"
    " where class = $4 and id = m.id and content is not null and $5 = 'true' order by iclass, key"
    " offset 0) i on true"
    " order by m.xid, m.id")

/* --- sight (sql/0015_sight.sql): as the functions of the database describe it --- */

STATEMENT(SIGHT_DECLARE, "sight_declare", 2, "select sight_declare($1, $2::text::json)")
STATEMENT(SIGHT_CHANGES, "sight_changes", 9,
          "select kind, text, number, since, floor, has_changed_teams from"
          " sight_changes($1, $2::text::xid8, $3, $4::text[], $5, $6, $7::text[], $8::text[], $9)")
STATEMENT(SIGHT_SINCE, "sight_since", 4,
          "select id, version from sight_since($1, $2::text[], $3, $4::text[])")
/* Documents that had one of the principals $4[] at the versions $3[], and have lost it since; $1 class, $2
 * id[]. */
STATEMENT(SIGHT_HAD, "sight_had", 4, "select sight_had($1, $2::text[], $3::bigint[], $4::text[])")
STATEMENT(SIGHT_WRITTEN, "sight_written", 8,
          "select id from sight_written($1, $2::text[], $3::text[], $4, $5::text[], $6, $7, $8)")

/* --- subscriptions (subscriptions.md) --- */

/* The subscriptions that a commit matches: its documents, $1 class[], $2 id[]; $3 the caller's session, $4
 * whether others are woken (0, 1), $5 the present minute, $6 start and $7 queue of their tasks; $8 the
 * caller's account (null: administrator), $9 rules decide (0, 1). */
STATEMENT(SUBSCRIPTIONS_MATCH, "subscription_match", 9,
          "select * from subscription_match($1::text[], $2::text[], $3, $4::int <> 0, $5, $6, $7::int, $8,"
          " $9::int <> 0)")

/* $1 session, $2 the present minute, $3 the caller's account (null: administrator), $4 rules? (0, 1). */
STATEMENT(SUBSCRIPTIONS_SHOW, "subscription_show", 4,
          "select f.def, f.version, f.until, f.endpoint, f.p256dh, f.auth, f.context, f.trial,"
          " s.vouched::int, s.account, s.credential from subscription s, subscription_show($1, $2) f"
          " where s.session = $1 and subscription_is_of(s, $3, $4::int <> 0)")
/* $1 session: declared by the administrator. */
STATEMENT(SUBSCRIPTIONS_VOUCH, "subscription_vouch", 1,
          "update subscription set vouched = true where session = $1 and not vouched and account = ''")
/* $1 session, $2 the present minute: it has returned. */
STATEMENT(SUBSCRIPTIONS_RETURN, "subscription_return", 2, "select subscription_return($1, $2)")

/* $1 session, $2 the present minute, $3 and stamp, $4 life, $5 whether it may be created, $6 whether all
 * definitions are replaced (0, 1), $7 key[], $8 def[], $9 key[] to remove, $10 most definitions, $11
 * whether the address ($12: three texts) changes, $13 whether the context ($14) changes, $15 most
 * subscriptions, $16 most with an address, $17 address of the client, $18 minutes of trial, $19 limits:
 * subscriptions and definitions of the client, definitions and bytes of the namespace, $20 the caller's
 * account (null: administrator), $21 its session, $22 rules decide (0, 1).  ST007, ST008, ST020 to ST024: the
 * limit exceeded (store_subscriptions.c).  ST027: it is another account's. */
STATEMENT(SUBSCRIPTIONS_PUT, "subscription_put", 22,
          "select * from subscription_put($1, $2, $3, $4, $5::int <> 0, $6::int <> 0, $7::text[], $8::text[],"
          " $9::text[], $10, $15, $16, case when $11::int <> 0 then $12::text[] end, $13::int <> 0, $14,"
          " $17, $18, $19::bigint[], $20, $21, $22::int <> 0)")

/* $1 session, $2 the caller's account (null: administrator), $3 rules decide (0, 1). */
STATEMENT(SUBSCRIPTIONS_DROP, "subscription_drop", 3, "select subscription_drop($1, $2, $3::int <> 0)")
/* $1 session. */
STATEMENT(SUBSCRIPTIONS_TAKE, "subscription_take", 1, "select * from subscription_take($1)")
/* Documents of a class.  $1 class, $2 the last id before, $3 earliest version, $4 at most. */
STATEMENT(SUBSCRIPTIONS_WRITTEN, "subscription_written", 4,
          "select id from doc where class = $1 and id > $2 and version >= $3 order by id limit $4::int")

/* Which of these are members?  $1 class[], $2 collection[], $3 its properties[], $4 value[], $5 id[]. */
STATEMENT(SUBSCRIPTIONS_MEMBERS, "subscription_members", 5,
          "select u.n - 1 from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])"
          " with ordinality u(class, name, keys, value, id, n)"
          " join collection c on c.class = u.class and c.name = u.name"
          " and array_to_string(c.keys, ' ') = u.keys"
          " join member m on m.collection = c.number and m.id = u.id and m.value = u.value"
          " where not m.has_left")

/* What was changed last in each collection, $1 to $4 as above: the rows before the transaction $5[] and the
 * id $6[]; whether they are members that have changed since the version $7[]; $8 rows of each at most. */
STATEMENT(SUBSCRIPTIONS_CHANGED, "subscription_changed", 8,
          "select u.n - 1, m.id, m.xid::text, not m.has_left and m.version >= u.version"
          " from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])"
          " with ordinality u(class, name, keys, value, xid, id, version, n)"
          " join collection c on c.class = u.class and c.name = u.name"
          " and array_to_string(c.keys, ' ') = u.keys"
          " cross join lateral (select b.id, b.xid, b.has_left, b.version from member b"
          " where b.collection = c.number and b.value = u.value and (b.xid, b.id) < (u.xid::xid8, u.id)"
          " order by b.collection desc, b.value desc, b.xid desc, b.id desc limit $8::int) m"
          " order by u.n, m.xid desc, m.id desc")

/* Documents that have left a collection, the last ones first: $1 class, $2 collection, $3 value; in the
 * transaction $4 or a later one, before the transaction $5 and the id $6; $7 at most. */
STATEMENT(SUBSCRIPTIONS_LEFT, "subscription_left", 7,
          "select m.id, m.xid::text, m.version from collection c"
          " cross join lateral (select b.id, b.xid, b.version from member b where b.collection = c.number"
          " and b.value = $3 and b.has_left and b.xid >= $4::text::xid8"
          " and (b.xid, b.id) < ($5::text::xid8, $6::text)"
          " order by b.collection desc, b.value desc, b.xid desc, b.id desc limit $7::int) m"
          " where c.class = $1 and c.name = $2 order by m.xid desc, m.id desc")

/* $1 session, $2 number of the taking. */
STATEMENT(SUBSCRIPTIONS_SENT, "subscription_sent", 2, "select subscription_sent($1, $2)")

/* $1 session, $2 endpoint. */
STATEMENT(
    SUBSCRIPTIONS_DROP_PUSH, "subscription_drop_push", 2,
    "update subscription set endpoint = null, p256dh = null, auth = null where session = $1 and endpoint = $2"
    " returning 1")

/* --- deferred copies (copies.md) --- */

/* Items whose copies are due by this commit.  $1 class[], $2 id[], $3 iclass[], $4 key[]; $5 its version. */
STATEMENT(COPY_NOTE, "copy_note", 5,
          "insert into copy_due (class, id, iclass, key, number)"
          " select class, id, iclass, key, $5 from unnest($1::text[], $2::text[], $3::text[], $4::text[])"
          " u(class, id, iclass, key)"
          " order by class collate \"C\", id collate \"C\", iclass collate \"C\", key collate \"C\""
          " on conflict (class, id, iclass, key) do update set number = excluded.number")

/* The first $3 notes of a document ($1 class, $2 id) with the present items; the version of the document,
 * which is above that of all items that no longer exist. */
STATEMENT(
    COPY_DUE, "copy_due", 3,
    "select q.iclass, q.key, q.number, coalesce(d.version, s.floor), i.version, i.content, i.raw"
    " from namespace s left join lateral (select version from doc where class = $1 and id = $2) d on true"
    " cross join lateral (select iclass, key, number from copy_due"
    " where class = $1 and id = $2 order by iclass, key limit $3::bigint) q"
    " left join lateral (select version, content, raw from item"
    " where class = $1 and id = $2 and iclass = q.iclass and key = q.key limit 1) i on true"
    " where s.one order by q.iclass, q.key")

/* Documents with an older copy. $1 iclass[], $2 key[], $3 class[], $4 ids above, $5 vop below; at most $6.
 * Position (from 1) in the arrays, and id; in this order. */
STATEMENT(COPY_FIND, "copy_find", 6,
          "select u.n, t.id from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])"
          " with ordinality u(iclass, key, class, after, guard, n)"
          " cross join lateral (select id from item where iclass = u.iclass and key = u.key and key <> ''"
          " and class = u.class and id > u.after and content is not null and vop < u.guard"
          " order by id limit $6::bigint) t order by u.n, t.id limit $6::bigint")

/* Locks the documents, no name twice, for COPY_WRITE, which must see the rows that were waited for, and
 * passes it the common version: $4 (now), or above the present ones. $1 class[], $2 id[].  ST004 as in
 * CORE: $3. */
STATEMENT(COPY_LOCK, "copy_lock", 4,
          "select (select case when number <> $3 then fail('ST004', 'schema') end from schema where one),"
          " set_config('stampd.copies', (case when max(w.version) >= $4 then version_above(max(w.version))"
          " else $4 end)::text, true)"
          " from (select * from unnest($1::text[], $2::text[]) a(class, id)"
          " order by class collate \"C\", id collate \"C\") u"
          " cross join lateral (select version from doc d"
          " where d.class = u.class and d.id = u.id and d.ctime <> 0 for no key update) w")

/* Sent after COPY_LOCK.  Copies: $1 class[], $2 id[] of the document, $3 n[] (position of the source, from
 * 1); sources: $4 iclass[], $5 key[] of the copy, $6 vop below, $7 vop[], $8 content[] (null: tombstones),
 * $9 raw[].  The documents are locked, so no other process moves these rows: they are found again by their
 * ctid. */
STATEMENT(
    COPY_WRITE, "copy_write", 9,
    "with older as materialized ("
    " select r.class, r.id, r.n, t.place, t.volume"
    " from unnest($1::text[], $2::text[], $3::int[]) r(class, id, n)"
    " cross join lateral (select ctid as place, octet_length(key) + octet_length(content) as volume from item"
    " where class = r.class and id = r.id and iclass = ($4::text[])[r.n] and key = ($5::text[])[r.n]"
    " and content is not null and vop < ($6::bigint[])[r.n] limit 1) t"
    "), stored as ("
    " update item i set version = (select current_setting('stampd.copies')::bigint),"
    " vop = ($7::bigint[])[o.n], content = ($8::text[])[o.n], raw = ($9::boolean[])[o.n]"
    " from older o where i.ctid = o.place"
    ") update doc d set version = (select current_setting('stampd.copies')::bigint), v1 = d.v1 + w.growth"
    " from (select class, id, sum(coalesce(octet_length(($5::text[])[n]) + octet_length(($8::text[])[n]), 0)"
    " - volume) as growth from older group by class, id) w where d.class = w.class and d.id = w.id returning "
    "1")

/* Deletes the notes of a document whose copies are written, unless they were renewed. $1 class, $2 id, $3
 * iclass[], $4 key[], $5 number[]. */
STATEMENT(COPY_DONE, "copy_done", 5,
          "delete from copy_due q using unnest($3::text[], $4::text[], $5::bigint[]) u(iclass, key, number)"
          " where q.class = $1 and q.id = $2 and q.iclass = u.iclass and q.key = u.key"
          " and q.number = u.number")
