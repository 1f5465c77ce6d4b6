/* Statements of documents, of answers stored under Idempotency-Keys and of the schema, as statements_table.h
 * describes. */

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

/* Locks, verifies, writes.  Returns a position in the log at or before the record of the commit
 * (segment/lineage.h), which costs nothing here.  ST001: some moved; DETAIL is a JSON list of [class, id,
 * version now] of all of them. $1 version; documents: $2 class[], $3 id[], $4 seen[], $5 act[] (enum
 * draft_act), $6 ctime[], $7 dtime[], $8 v1[], $9 v2[]; items: $10 n[] (place of the document, from 1), $11
 * iclass[], $12 key[], $13 vop[], $14 content[] (null: tombstone), $15 raw[].  ST004: the schema has another
 * number than $16. */
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
    ") select (pg_current_wal_insert_lsn() - '0/0')::bigint from verdict where bad is null")

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
    " when count(*) = 0 then fail('ST001', '[]') end, (pg_current_wal_insert_lsn() - '0/0')::bigint"
    " from written")

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

/* Sums over all living documents: first those of the namespace, then those of each class, the largest first;
 * at most $1 rows.  Reads a row for each class, and those that no round of the keeper has folded yet. */
STATEMENT(VOLUMES, "volumes", 1,
          "select class, documents, v1, v2 from volumes()"
          " order by class is null desc, v1 + v2 desc, class limit $1::bigint")

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

/* --- spools (spool.md) --- */

/* Which of these records are stored, with their digests; at least one row, with the number up to which the
 * others are forgotten.  $1 account, $2 series, $3 sequence[]. */
STATEMENT(
    SPOOL_FIND, "spool_find", 3,
    "select coalesce((select s.forgotten from spool_series s where s.account = $1 and s.series = $2), 0),"
    " r.sequence, r.digest from (select 1) one left join lateral (select k.sequence, k.digest"
    " from unnest($3::bigint[]) w(sequence) cross join lateral (select r.sequence, r.digest from "
    "spool_record r"
    " where r.account = $1 and r.series = $2 and r.sequence = w.sequence limit 1) k) r on true")

/* Stores the names of records, in their order: a batch that arrives twice waits here, before it holds any
 * other lock.  One that is stored already violates the primary key (commit_verdict): a lookup of each before
 * its insertion, as `on conflict` needs it, would take half as long again.  $1 account, $2 series,
 * $3 sequence[], $4 digest[], $5 at. */
STATEMENT(SPOOL_NOTE, "spool_note", 5,
          "with known as (insert into spool_series (account, series, created) values ($1, $2, $5)"
          " on conflict (account, series) do nothing)"
          " insert into spool_record (account, series, sequence, digest, at)"
          " select $1, $2, n.sequence, n.digest, $5 from unnest($3::bigint[], $4::text[]) n(sequence, digest)"
          " order by n.sequence")

/* With it, at the end, when no other commit can forget one of its names unseen.  ST033: $5, the least of the
 * numbers, was forgotten.  $1: older ones are forgotten now, $2 at most; $3 account, $4 series. */
STATEMENT(SPOOL_PURGE, "spool_purge", 5,
          "select case when exists (select from spool_series s where s.account = $3 and s.series = $4"
          " and s.forgotten >= $5) then fail('ST033', 'spool') end, spool_purge($1, $2::int)")

/* The applied schema. */
STATEMENT(SCHEMA, "schema", 0,
          "select number, content, building, wakes, (select secret from namespace where one), owners from "
          "schema where "
          "one")
/* For administrators: what is applied, fields and tables that are being filled, as JSON. */
STATEMENT(
    SCHEMA_PROGRESS, "schema_progress", 0,
    "select json_build_object('number', number, 'schema', content::json,"
    " 'building', to_json(string_to_array(building, ' ')),"
    " 'filling', coalesce((select json_agg(json_build_object('c', class, 'i', iclass, 'done', done))"
    " from (select class, iclass, done from schema_fill order by class, iclass limit 1000) f), '[]'))::text"
    " from schema where one")
STATEMENT(SCHEMA_NUMBER, "schema_number", 0, "select number from schema where one")

/* The data keys of an encrypted namespace, each with the classes whose ids are encrypted, separated by
 * blanks.
 */
STATEMENT(DATA_KEYS, "data_keys", 0,
          "select id, site, wrapped, current_database()::text,"
          " coalesce((select string_agg(class, ' ' order by class) from stampd.encrypted_id), '')"
          " from stampd.data_key order by id")

/* Owners whose bytes are counted: declares them ($1: JSON {class: "Item.member"}); counts the documents
 * ($1 classes, $2 ids) that were just written; $3: most bytes of an account, 0: no limit; $4: the caller's.
 */
STATEMENT(OWNERS_DECLARE, "owners_declare", 1, "select owners_declare($1)")
STATEMENT(OWNED_WRITE, "owned_write", 4, "select owned_write($1::text[], $2::text[], $3, $4)")
/* The account for which a document counts ($1 class, $2 id), and the bytes that it has; nobody: no row. */
STATEMENT(OWNED_ROOM, "owned_room", 2,
          "select o.account, b.bytes from owned o cross join lateral ("
          "select bytes from account_bytes b where b.account = o.account offset 0) b"
          " where o.class = $1 and o.id = $2")

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
