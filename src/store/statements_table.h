/* Every statement once: STATEMENT(NAME, "name", parameters, "sql").  Included several times.
 *
 * Pitfalls that shaped them (each was found by experiment): an unreferenced part of a WITH never runs,
 * neither its locks nor its fail(); all parts of a statement see one snapshot, so rows that were waited for
 * must be read in a later statement; rows are locked in one sorted pass, whose sorted subquery must stay a
 * subquery. */

/* $1 class, $2 id.  One row with the floor and, in place of vop, the number of the schema (the header), and
 * a row for each item; unordered. */
STATEMENT(
    LOAD, "load", 2,
    "select s.floor, d.version, d.ctime, d.dtime, d.v1, d.v2,"
    " null::text, null::text, null::bigint, (select number from schema where one), null::text, null::boolean"
    " from namespace s left join doc d on d.class = $1 and d.id = $2 where s.one"
    " union all"
    " select null, null, null, null, null, null, iclass, key, version, vop, content, raw"
    " from item where class = $1 and id = $2")

/* $3, $4: version and ctime of a cached copy.  Items newer than the copy if it is of the same incarnation
 * and includes all removals whose tombstones the document has purged; else all items.  The reader decides
 * the same from the header. */
STATEMENT(
    LOAD_NEWER, "load_newer", 4,
    "select s.floor, d.version, d.ctime, d.dtime, d.v1, d.v2,"
    " null::text, null::text, null::bigint, (select number from schema where one), null::text, null::boolean"
    " from namespace s left join doc d on d.class = $1 and d.id = $2 where s.one"
    " union all"
    " select null, null, null, null, null, null, iclass, key, version, vop, content, raw"
    " from item where class = $1 and id = $2 and version > coalesce((select $3::bigint from doc d"
    " where d.class = $1 and d.id = $2 and d.ctime = $4 and $3 between d.dtime and d.version), 0)")

/* Sent before a long read, in its pipeline, in effect as long as that: $1 milliseconds. */
STATEMENT(READ_LIMIT, "read_limit", 1, "select set_config('statement_timeout', $1, true)")

/* The same for all statements that follow together: READ_LEFT is sent before each of them. */
STATEMENT(READ_UNTIL, "read_until", 1,
          "select set_config('stampd.read_until', (extract(epoch from clock_timestamp()) * 1000 + "
          "$1::bigint)::bigint::text, true)")
STATEMENT(READ_LEFT, "read_left", 0,
          "select set_config('statement_timeout', greatest(1, current_setting('stampd.read_until')::bigint"
          " - (extract(epoch from clock_timestamp()) * 1000)::bigint)::text, true)")

/* Bytes of documents, 0 for absent ones, in order: $1 class[], $2 id[]. */
STATEMENT(SIZES, "sizes", 2,
          "select coalesce(d.v1, 0) from unnest($1::text[], $2::text[]) with ordinality u(class, id, n)"
          " left join lateral (select v1 from doc d where d.class = u.class and d.id = u.id) d on true"
          " order by u.n")

/* Absence is protected by an advisory lock on the hash of the name, taken one statement before the read. $1
 * class[], $2 id[], $3 seen[], $4 act[]: those of all documents; seen 0 are those absent. */
STATEMENT(
    ABSENT, "absent", 4,
    "select count(case when act > 0 then pg_advisory_xact_lock(h) else pg_advisory_xact_lock_shared(h) end)"
    " from (select hashtextextended(a.class || '.' || a.id, 0) as h, max(a.act) as act"
    " from unnest($1::text[], $2::text[], $3::bigint[], $4::int[]) a(class, id, seen, act)"
    " where a.seen = 0 group by 1 order by 1) o")

/* Locks, verifies, writes.  ST001: some moved; DETAIL is a JSON list of [class, id, version now] of all of
 * them. $1 version; documents: $2 class[], $3 id[], $4 seen[], $5 act[] (enum draft_act), $6 ctime[], $7
 * dtime[], $8 v1[], $9 v2[]; items: $10 n[] (place of the document, from 1), $11 iclass[], $12 key[], $13
 * vop[], $14 content[] (null: tombstone), $15 raw[].  ST004: the schema has another number than $16. */
STATEMENT(
    CORE, "core", 16,
    "with locked as materialized ("
    " select u.class, u.id, u.seen, coalesce(w.version, r.version, 0) as now"
    " from (select * from unnest($2::text[], $3::text[], $4::bigint[], $5::int[]) a(class, id, seen, act)"
    " order by class collate \"C\", id collate \"C\") u"
    " left join lateral (select version from doc d"
    " where d.class = u.class and d.id = u.id and u.act > 0 for no key update) w on true"
    " left join lateral (select version from doc d"
    " where d.class = u.class and d.id = u.id and u.act = 0 for share) r on true"
    "), verdict as materialized ("
    " select case when (select number from schema where one) <> $16 then fail('ST004', 'schema')"
    " when bool_or(now <> seen) then fail('ST001',"
    " json_agg(json_build_array(class, id, now)) filter (where now <> seen)::text) end as bad from locked"
    "), written as ("
    " update doc d set version = $1, ctime = u.ctime, dtime = u.dtime, v1 = u.v1, v2 = u.v2"
    " from verdict, unnest($2::text[], $3::text[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[],"
    " $8::bigint[], $9::bigint[]) u(class, id, seen, act, ctime, dtime, v1, v2)"
    " where u.seen > 0 and u.act > 0 and d.class = u.class and d.id = u.id"
    "), stored as ("
    " insert into item (class, id, iclass, key, version, vop, content, raw)"
    " select ($2::text[])[i.n], ($3::text[])[i.n], i.iclass, i.key, $1, i.vop, i.content, i.raw"
    " from verdict, unnest($10::int[], $11::text[], $12::text[], $13::bigint[], $14::text[], $15::boolean[])"
    " i(n, iclass, key, vop, content, raw)"
    " on conflict (class, id, iclass, key) do update"
    " set version = excluded.version, vop = excluded.vop, content = excluded.content, raw = excluded.raw"
    ") select $1::bigint as version from verdict where bad is null")

/* CORE for a commit of one document that has a row, the most common case, at seven tenths of the cost: the
 * update locks and verifies in one step, because after a wait for the lock it rechecks the version of the
 * row. $1 version; $2 class, $3 id, $4 seen, $5 ctime, $6 dtime, $7 v1, $8 v2; items: $9 iclass[], $10
 * key[], $11 vop[], $12 content[] (null: tombstone), $13 raw[]; $14 as $16 there. */
STATEMENT(
    CORE_ONE, "core_one", 14,
    "with written as ("
    " update doc set version = $1, ctime = $5, dtime = $6, v1 = $7, v2 = $8"
    " where class = $2 and id = $3 and version = $4 returning 1"
    "), stored as ("
    " insert into item (class, id, iclass, key, version, vop, content, raw)"
    " select $2, $3, i.iclass, i.key, $1, i.vop, i.content, i.raw"
    " from written, unnest($9::text[], $10::text[], $11::bigint[], $12::text[], $13::boolean[])"
    " i(iclass, key, vop, content, raw)"
    " on conflict (class, id, iclass, key) do update"
    " set version = excluded.version, vop = excluded.vop, content = excluded.content, raw = excluded.raw"
    ") select case when (select number from schema where one) <> $14 then fail('ST004', 'schema')"
    " when count(*) = 0 then fail('ST001', '[]') end from written")

/* Creates documents without a row.  ST001: the version is not above the floor. $1 version, $2 class[], $3
 * id[], $4 seen[], $5 act[], $6 ctime[], $7 dtime[], $8 v1[], $9 v2[]. */
STATEMENT(
    BORN, "born", 9,
    "insert into doc (class, id, version, ctime, dtime, v1, v2)"
    " select u.class, u.id, case when s.floor < $1 then $1 else fail('ST001', 'floor') end,"
    " u.ctime, u.dtime, u.v1, u.v2"
    " from namespace s, unnest($2::text[], $3::text[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[],"
    " $8::bigint[], $9::bigint[]) u(class, id, seen, act, ctime, dtime, v1, v2)"
    " where s.one and u.seen = 0 and u.act = 1 order by u.class collate \"C\", u.id collate \"C\"")

/* Deletes the items of an ended incarnation. $1 version, $2 class[], $3 id[], $4 act[]. */
STATEMENT(WIPE, "wipe", 4,
          "delete from item i using unnest($2::text[], $3::text[], $4::int[]) u(class, id, act)"
          " where u.act > 1 and i.class = u.class and i.id = u.id and i.version < $1")

/* Deletes tombstones that are no longer needed. $1 class[], $2 id[], $3 dtime[] of the documents; $4 n[],
 * $5 iclass[], $6 key[]. */
STATEMENT(PURGE, "purge", 6,
          "delete from item i using unnest($4::int[], $5::text[], $6::text[]) p(n, iclass, key)"
          " where i.class = ($1::text[])[p.n] and i.id = ($2::text[])[p.n] and i.iclass = p.iclass and i.key "
          "= p.key"
          " and i.content is null and i.version <= ($3::bigint[])[p.n]")

/* Places (from 1) of the documents that are not at the version seen.  $1 class[], $2 id[], $3 seen[]. */
STATEMENT(VERIFY, "verify", 3,
          "select u.n from unnest($1::text[], $2::text[], $3::bigint[]) with ordinality u(class, id, seen, n)"
          " left join lateral (select version from doc d where d.class = u.class and d.id = u.id) d on true"
          " where coalesce(d.version, 0) <> u.seen")

/* A page of living documents: $1 class; ids above $2 (cursor), from $3 (prefix), below ($4, $5), a pair of
 * class and id; versions above $6; at most $7 rows out of $8 read.  The last row read is always returned:
 * its number is $8.  Documents expired up to minute $9 count as deleted. */
STATEMENT(LIST, "list", 9,
          "select id, version, ctime, dtime, v1, v2, number from"
          " (select id, version, case when ctime <> 0 and version > $6 and exists"
          " (select from expiry e where e.class = $1 and e.id = doc.id and e.until <= $9) then 0 else ctime "
          "end as ctime, dtime, v1, v2, row_number() over (order by id) as number from doc"
          " where class = $1 and id > $2 and id >= $3 and (class, id) < ($4::text, $5::text)"
          " order by id limit $8::bigint) d"
          " where (ctime <> 0 and version > $6) or number = $8::bigint order by id limit $7::bigint")

/* The classes above $1, at most $2: one index step for each, regardless of its size. */
STATEMENT(
    CLASSES, "classes", 2,
    "with recursive step(class, number) as ("
    "(select class, 1::bigint from doc where class > $1 order by class limit 1)"
    " union all select d.class, s.number + 1 from step s cross join lateral"
    " (select class from doc where class > s.class order by class limit 1) d where s.number < $2::bigint"
    ") select class from step order by number")

/* The answer stored under an Idempotency-Key: $1 account, $2 key; at $3 or after. */
STATEMENT(
    IDEMPOTENCY_FIND, "idempotency_find", 3,
    "select digest::text, mime::text, answer::bytea, version::bigint, versions_after::text from idempotency"
    " where account = $1 and key = $2 and (at >= $3) is not false")

/* The first statement of its commit: a duplicate request waits here, before it holds any lock.  ST003: an
 * answer is already stored.  An expired one is replaced. $1 account, $2 key, $3 digest, $4 mime, $5 answer,
 * $6 version, $7 at; $8: older ones are too old; $9 versions_after. */
STATEMENT(
    IDEMPOTENCY, "idempotency", 9,
    "with kept as (insert into idempotency as o (account, key, digest, mime, answer, version, at, "
    "versions_after)"
    " values ($1, $2, $3, $4, $5, $6, $7, $9) on conflict (account, key) do update"
    " set digest = excluded.digest, mime = excluded.mime, answer = excluded.answer,"
    " version = excluded.version, at = excluded.at, versions_after = excluded.versions_after where o.at < $8 "
    "returning 1)"
    " select case when count(*) = 0 then fail('ST003', 'idempotency') end from kept")

/* The last statement of that commit: deletes more answers than the one added, so that the table contains
 * only unexpired ones in the long run.  Never waits for a lock. $1: older ones are too old. */
STATEMENT(IDEMPOTENCY_PURGE, "idempotency_purge", 1,
          "delete from idempotency where ctid = any (array(select ctid from idempotency where at < $1"
          " order by at limit 4 for update skip locked))")

/* The applied schema. */
STATEMENT(SCHEMA, "schema", 0,
          "select number, content, building, wakes, (select secret from namespace where one), owners from "
          "schema where "
          "one")
STATEMENT(SCHEMA_NUMBER, "schema_number", 0, "select number from schema where one")

/* Owners whose bytes are counted: declares them ($1: JSON {class: "Item.member"}); counts the documents
 * ($1 classes, $2 ids) that were just written; $3: most bytes of an account, 0: no limit; $4: the caller's.
 */
STATEMENT(OWNERS_DECLARE, "owners_declare", 1, "select owners_declare($1)")
STATEMENT(OWNED_WRITE, "owned_write", 4, "select owned_write($1::text[], $2::text[], $3, $4)")

/* Updates the memberships and expiry of these documents of a class ($1, $2 ids) from the contents just
 * written; $3: the present minute. */
STATEMENT(MEMBERS, "members", 3, "select member_write($1, $2::text[], $3)")

/* Values that are unique in all namespaces (reservations.h).  In the namespace, after MEMBERS in one
 * transaction: the values that it takes and gives up.  In z: reserves $1 class[], $2 name[], $3 value[] for
 * database $4; the first row has the number of the reservation, the others are values that another database
 * has. */
STATEMENT(GLOBAL_CHANGES, "global_changes", 0, "select class, name, value, id from global_changes()")
STATEMENT(GLOBAL_RESERVE, "global_reserve", 4,
          "select number, ordinal, database, reservation from global_reserve($1::text[], $2::text[], "
          "$3::text[], $4)")
/* In z: drops values that the database no longer has, if $5 is still their reservation. */
STATEMENT(GLOBAL_DROP, "global_drop", 5, "select global_drop($1::text[], $2::text[], $3::text[], $4, $5)")
/* In a namespace: held, free or busy.  $1 class, $2 name, $3 value, $4 the present minute. */
STATEMENT(GLOBAL_STATE, "global_state", 4, "select global_state($1, $2, $3, $4)")

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

/* --- tasks (tasks.md) --- */

/* Ends the tasks of this commit.  ST002: some no longer belong to this attempt; DETAIL is a JSON list of
 * their ids.  In the order of their ids, as they are claimed.  Each is found by its primary key, then by
 * its ctid, regardless of the statistics: `coalesce` prevents the use of the index of running tasks. $1
 * taskid[], $2 retry[], $3 starttime, $4 stoptime. */
STATEMENT(TASK_END, "task_end", 4,
          "with found as materialized (select e.retry, w.place from"
          " (select taskid, retry from unnest($1::text[], $2::int[]) e(taskid, retry) order by 1) e"
          " cross join lateral (select ctid as place from taskqueue where taskid = e.taskid limit 1) w),"
          " ended as (delete from taskqueue t using found f"
          " where t.ctid = f.place and coalesce(t.starttime, 0) = $3 and t.retry = f.retry returning t.*),"
          " noted as (insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, "
          "stoptime)"
          " select taskid, opname, info, qn, retry, step + 1, startat, starttime, $4 from ended)"
          " select case when count(*) <> cardinality($1::text[]) then fail('ST002', coalesce((select"
          " json_agg(a.taskid) from unnest($1::text[]) a(taskid) where a.taskid not in (select taskid from "
          "ended))::text,"
          " '[]')) end from ended")

/* The same for one task. $1 taskid, $2 retry, $3 starttime, $4 stoptime. */
STATEMENT(
    TASK_END_ONE, "task_end_one", 4,
    "with ended as (delete from taskqueue where taskid = $1 and retry = $2 and coalesce(starttime, 0) = $3"
    " returning opname, info, qn, step, startat)"
    " insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime)"
    " select $1, e.opname, e.info, e.qn, $2,"
    " case when e.opname is null then fail('ST002', json_build_array($1::text)::text) else e.step + 1 end,"
    " e.startat, $3, $4 from (select 1) one left join ended e on true")

/* The task continues after this commit.  ST002 as above. $1 taskid, $2 retry, $3 starttime, $4 checkpoint. */
STATEMENT(TASK_STEP, "task_step", 4,
          "with kept as (update taskqueue set step = step + 1, checkpoint = $4"
          " where taskid = $1 and retry = $2 and starttime = $3 returning 1)"
          " select case when count(*) = 0 then fail('ST002', json_build_array($1::text)::text) end from kept")

/* Before the creation of a task for a client.  ST026: the client, or all clients, have too many. $1 client,
 * $2 most of it, $3 most of all. */
STATEMENT(TASK_ADMIT, "task_admit", 5, "select task_admit($1, $2::int, $3::int, $4, $5::bigint[])")

/* Creates tasks, in the order of their resources; a task that already waits for the resource takes their
 * place (task_create in sql/ has the same rule). $1 taskid[], $2 opname[], $3 param[], $4 info[], $5
 * startat[], $6 qn[], $7 priority[], $8 batch[], $9 resource[], $10 domain[], $11 created, $12 strict[] (0,
 * 1), $13 requester (0: none), $14 latest[], $15 account[], $16 credential[], $17 of_client[] (0, 1). */
STATEMENT(
    TASK_MAKE, "task_make", 17,
    "insert into taskqueue as t"
    " (taskid, number, opname, param, info, startat, qn, priority, batch, resource, domain, created, strict, "
    "requester, latest, account, credential, of_client)"
    " select s.taskid, s.number, s.opname, s.param, s.info, s.startat, s.qn, s.priority, s.batch, "
    "s.resource, s.domain,"
    " $11::bigint, s.strict <> 0, nullif($13::bigint, 0), nullif(s.latest, 0), s.account, s.credential, "
    "s.of_client <> 0 from (select o.*, "
    "nextval('task_number') as number from unnest($1::text[], $2::text[],"
    " $3::text[], $4::text[], $5::bigint[], $6::int[], $7::int[], $8::int[], $9::text[], $10::text[],"
    " $12::int[], $14::bigint[], $15::text[], $16::text[], $17::int[]) with ordinality"
    " o(taskid, opname, param, info, startat, qn, priority, batch, resource, domain, strict, latest, "
    "account, "
    "credential, of_client, place) "
    "order by o.place "
    "offset 0) s"
    " order by s.resource collate \"C\", s.opname collate \"C\""
    " on conflict (opname, resource) where starttime is null and resource is not null do update"
    " set param = excluded.param, info = excluded.info, priority = least(t.priority, excluded.priority),"
    " account = excluded.account, credential = excluded.credential, of_client = excluded.of_client,"
    " startat = case when t.startat < 991231235959999 or t.exc = 'HELD'"
    " then greatest(t.startat, least(excluded.startat, coalesce(t.latest, excluded.startat)))"
    " else excluded.startat end,"
    " retry = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.retry else 0 end,"
    " exc = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.exc end,"
    " report = case when t.startat < 991231235959999 or t.exc = 'HELD' then t.report end"
    " returning taskid, opname, resource, startat, priority, retry")

/* One task without a resource: nothing can take its place.  $1 taskid, $2 opname, $3 param, $4 info,
 * $5 startat, $6 qn, $7 priority, $8 batch, $9 domain, $10 created, $11 strict (0, 1),
 * $12 requester (0: none), $13 account, $14 credential, $15 of_client (0, 1). */
STATEMENT(
    TASK_MAKE_ONE, "task_make_one", 15,
    "insert into taskqueue"
    " (taskid, opname, param, info, startat, qn, priority, batch, domain, created, strict, requester,"
    " account, credential, of_client)"
    " values ($1, $2, $3, $4, $5, $6::int, $7::int, $8::int, $9, $10, $11::int <> 0, nullif($12::bigint, 0),"
    " $13, $14, $15::int <> 0)")

/* Columns of a task that is due, as tasks_due has them.  $1 domain, $2 latest start. */
STATEMENT(TASK_NEXT, "task_next", 2,
          "select taskid, opname, qn, priority, startat, retry, batch, domain from taskqueue"
          " where taskid = task_next($1, $2)")

/* A claim need not be durable.  $1 taskid, $2 starttime, $3 latest start, $4 holder. */
STATEMENT(
    TASK_CLAIM, "task_claim", 4,
    "update taskqueue t set starttime = $2, holder = $4, exc = null, report = null"
    " where taskid = $1 and starttime is null and startat <= $3"
    " and (domain is null or task_next(domain, $3) = taskid)"
    " returning taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn, "
    "priority, batch, created,"
    " (select c.period from cron c where c.name = t.cron and not c.dropped), account, credential, of_client,"
    " set_config('synchronous_commit', 'off', true)")

/* Several, without waiting for locks: a task missing in the result is locked at this moment, or another
 * commit has just moved its row, which counts as the same (busy). $1 taskid[], and as above. */
STATEMENT(
    TASK_CLAIM_MANY, "task_claim_many", 4,
    "with free as materialized (select w.place from (select taskid from unnest($1::text[]) e(taskid) order "
    "by 1) e"
    " cross join lateral (select t.ctid as place from taskqueue t where t.taskid = e.taskid and t.starttime "
    "is null"
    " and t.startat <= $3 and t.domain is null for update skip locked) w)"
    " update taskqueue t set starttime = $2, holder = $4, exc = null, report = null"
    " from free where t.ctid = free.place"
    " returning t.taskid, opname, param, info, resource, domain, checkpoint, startat, retry, step, qn, "
    "priority, batch, created,"
    " (select c.period from cron c where c.name = t.cron and not c.dropped), account, credential, of_client,"
    " (select set_config('synchronous_commit', 'off', true))")

/* After a claim: why the others could not be claimed. $1 taskid[]. */
STATEMENT(TASK_STATES, "task_states", 1,
          "select e.taskid, t.taskid is not null, t.starttime, t.startat, t.domain is not null"
          " from unnest($1::text[]) e(taskid) left join taskqueue t on t.taskid = e.taskid")

/* $1 taskid, $2 starttime, $3 retry, $4 startat, $5 whether it counts (0, 1), $6 exc, $7 report, $8
 * stoptime. */
STATEMENT(TASK_BACK, "task_back", 8, "select task_put_back($1, $2, $3, $4, $5::int <> 0, $6, $7, $8)")

/* After an unknown outcome: the step of the task, if it still belongs to this attempt; whether the attempt
 * has done it. $1 taskid, $2 starttime, $3 retry. */
STATEMENT(
    TASK_FIND, "task_find", 3,
    "select (select step from taskqueue where taskid = $1 and starttime = $2 and retry = $3),"
    " exists (select from task_history where taskid = $1 and starttime = $2 and retry = $3 and exc is null)")

/* $1 at most, $2 latest start, $3 earliest, if $4 is still the mark of early starts. */
STATEMENT(TASK_DUE, "task_due", 4,
          "select taskid, opname, qn, priority, startat, retry, batch, domain from tasks_due($1::int, $2,"
          " coalesce((select $3::bigint from task_early where mark = $4), 0))")

/* What bounds the next scan (backlog.h). $1 earliest start, if $2 is still the mark of early starts.  now()
 * is earlier than the snapshot, and the transaction that is begun here later than it. */
STATEMENT(
    TASK_OLDEST, "task_oldest", 2,
    "select tasks_oldest(coalesce((select $1::bigint from task_early where mark = $2), 0)),"
    " coalesce((select mark from task_early), 0), pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
    " stamp_of(now() - interval '30 seconds'), pg_current_xact_id()::text::bigint")

/* Tasks with unreported failures: $1 least number of failures, $2 at most.  Marks them as reported: $1
 * taskid, $2 its failures. */
STATEMENT(TASK_UNREPORTED, "task_unreported", 2,
          "select taskid, opname, info, retry, startat, exc, report from tasks_unreported($1::int, $2::int)")
STATEMENT(TASK_REPORTED, "task_reported", 2, "select task_reported($1, $2::int)")

/* $1 stamp, $2 at most. */
STATEMENT(TASK_EXPIRE, "task_expire", 2, "select task_expire($1, $2::int)")

/* The operations that this server declares. $1 opname[], $2 qn[], $3 batch[], $4 largest param. */
STATEMENT(TASK_OPERATIONS, "task_operations", 4,
          "select task_operations($1::text[], $2::int[], $3::int[], $4::int)")

STATEMENT(TASK_RUNNING, "task_running", 0,
          "select taskid, opname, qn, starttime, retry, holder, startat from tasks_running()")

/* $1 stamp, $2 batch. */
STATEMENT(TASK_PURGE, "task_purge", 2, "select task_purge_history($1, $2::int)")

/* For administrators. $1 operation, $2 prefix of info, $3 least retry, $4 earliest and $5 latest start, $6
 * at most, $7 start and $8 number of the last of the page before; task_rows.h has the columns. */
STATEMENT(
    TASK_LIST, "task_list", 8,
    "select taskid, opname, task_state(t), qn, priority, startat, retry, starttime, holder, batch,"
    " info, resource, domain, step, exc, report, created, account, credential, number, null::text, null::text"
    " from task_list($1, $2, $3::int, $4, $5, $6::int, $7, $8) t")

/* $1 taskid; the same columns. */
STATEMENT(
    TASK_SHOW, "task_show", 1,
    "select taskid, opname, task_state(t), qn, priority, startat, retry, starttime, holder, batch,"
    " info, resource, domain, step, exc, report, created, account, credential, number, param, checkpoint"
    " from taskqueue t where taskid = $1")

/* $1 taskid, $2 operation, $3 prefix of info, $4 failures only (0, 1), $5 earliest and $6 latest end, $7 at
 * most, $8 number of the last of the page before. */
STATEMENT(TASK_ATTEMPTS, "task_attempts", 8,
          "select taskid, opname, qn, retry, step, startat, starttime, stoptime, info, exc, report, number"
          " from task_attempts($1, $2, $3, $4::int <> 0, $5, $6, $7::int, $8)")

/* Actions of administrators: the result, and whether there is such a task. $1 taskid, $2 startat. */
STATEMENT(TASK_MOVE, "task_move", 2,
          "select task_move($1, $2), exists (select from taskqueue where taskid = $1)")
STATEMENT(
    TASK_HOLD, "task_hold", 1,
    "select case when task_hold($1) then 991231235959999 end, exists (select from taskqueue where taskid "
    "= $1)")
STATEMENT(TASK_DROP, "task_drop", 1, "select case when task_drop($1) then 0::bigint end, false")

/* $1 most rows that a count reads. */
STATEMENT(TASK_BACKLOG, "task_backlog", 1,
          "select qn, due, later, running, parked, failing, oldest from task_backlog($1::int)")

/* --- periodic tasks --- */

/* The end of a periodic task, which waits for its next time.  ST002 as in TASK_END. $1 taskid, $2
 * starttime, $3 retry, $4 stoptime, $5 startat of the next, $6 period and zone from which it was
 * computed. */
STATEMENT(CRON_END, "cron_end", 6,
          "select case when not cron_end($1, $2, $3, $4, $5, $6)"
          " then fail('ST002', json_build_array($1::text)::text) end")

/* The rules to plan. $1 zone; declared by modules: $2 name[], $3 period[], $4 module[]. */
STATEMENT(CRON_SCAN, "cron_scan", 4,
          "select name, opname, period, after from cron_scan($1, $2::text[], $3::text[], $4::text[])")

/* $1 rule, $2 its period and $3 its operation as seen, $4 startat, $5 qn, $6 zone. */
STATEMENT(CRON_PLAN, "cron_plan", 6, "select cron_plan($1, $2, $3, $4, $5::int, $6)")
