/* All statements of the process for live events: STATEMENT(NAME, "name", parameters, "sql"), like those of
 * workers in store/statements_table.h.  Included several times. */

/* In a do block, since every result must be rows.  After a crash of PostgreSQL a new incarnation begins. */
STATEMENT(LISTEN, "live_listen", 0,
          "do $$ begin execute 'listen stampd'; execute 'listen stampd_live';"
          " insert into since_crash default values on conflict do nothing; end $$")

STATEMENT(SECRET, "live_secret", 0, "select secret from namespace where one")

/* $1 code of the namespace, in the database of z: its configuration, that of z, and its rules. */
STATEMENT(RULES, "live_access", 1,
          "select (select content from stampd.item where class = 'Namespace' and id = $1 and iclass = 'Conf'"
          " and key = '' and not raw), (select content from stampd.item where class = 'Namespace'"
          " and id = 'z' and iclass = 'Conf' and key = '' and not raw),"
          " (select content from stampd.item where class = 'Namespace' and id = $1 and iclass = 'Rules'"
          " and key = '' and not raw),"
          " (select version from stampd.item where class = 'Namespace' and id = $1 and iclass = 'Rules'"
          " and key = '')")

/* Whether the rules are followed (doc/explanation/sight.md): their version, since which transaction, and the
 * first that has not ended; then the declaration of their places, $1 the version, $2 the places. */
STATEMENT(SIGHT, "live_sight", 0,
          "select case when r.schema = c.number then r.mark else -1 end, coalesce(r.since::text::bigint, 0),"
          " pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
          " from sight_rules r join schema c on c.one where r.one")
STATEMENT(DECLARE, "live_declare", 2, "select stampd.sight_declare($1, $2::text::json)")

STATEMENT(SCHEMA, "live_schema", 0, "select number, content from schema where one")

/* The documents $1 class[], $2 id[], in order, as far as they have at most $3 bytes together, the first five
 * whatever their size.  Place 0: the schema, and whether the rules are followed; a row of place n without a
 * class of items: the header of document n, or with a key one of up to $5 principals that it has lost or
 * gained in the transaction $4 or a later one, or, if $6, with a key and a content the name and a value of a
 * collection in which it was written then, or which it has left; the others: its items, removed ones too,
 * with the transaction that wrote each. */
STATEMENT(
    LOAD, "live_load", 6,
    "with named as materialized (select u.n, u.class, u.id, d.version, d.ctime, d.dtime,"
    " (sum(coalesce(d.v1, 0)) over (order by u.n))::bigint as bytes"
    " from unnest($1::text[], $2::text[]) with ordinality u(class, id, n)"
    " left join doc d on d.class = u.class and d.id = u.id)"
    " select 0::bigint, s.number, case when r.schema = s.number then r.mark else -1 end,"
    " coalesce(r.since::text::bigint, 0), null::text, null::text, s.building, null::boolean"
    " from schema s join sight_rules r on r.one where s.one"
    " union all"
    " select n, version, ctime, dtime, null, null, null, null from named where n <= 5 or bytes <= $3"
    " union all"
    " select m.n, g.version, g.gained, g.xid::text::bigint, null, g.principal, null, g.is_lost from named m"
    " cross join lateral (select s.* from sight s where s.class = m.class and s.id = m.id"
    " and s.xid >= $4::text::xid8 limit $5) g where m.n <= 5 or m.bytes <= $3"
    " union all"
    " select m.n, g.version, 0, g.xid::text::bigint, null, c.name, g.value, g.has_left from named m"
    " join collection c on $6 and c.class = m.class cross join lateral (select b.* from member b"
    " where b.collection = c.number and b.id = m.id and b.xid >= $4::text::xid8 limit $5) g"
    " where m.n <= 5 or m.bytes <= $3"
    " union all"
    " select m.n, i.version, i.vop, i.xmin::text::bigint, i.iclass, i.key, i.content, i.raw from named m"
    " join item i on i.class = m.class and i.id = m.id where m.ctime > 0 and (m.n <= 5 or m.bytes <= $3)")

/* $1 class[], $2 id[], $3 version[] (0: unknown), $4 first transaction whose members count where the version
 * is unknown. */
STATEMENT(NEWS, "live_news", 4,
          "select 1, d.class, null::text, null::text, coalesce(o.version, 0), d.id"
          " from unnest($1::text[], $2::text[], $3::bigint[]) d(class, id, version)"
          " left join doc o on o.class = d.class and o.id = d.id where d.version = 0"
          " union all"
          " select 2, d.class, c.name, m.value, m.version, null"
          " from unnest($1::text[], $2::text[], $3::bigint[]) d(class, id, version)"
          " join collection c on c.class = d.class join member m on m.collection = c.number and m.id = d.id"
          " where m.version >= d.version and (d.version > 0 or m.xid >= $4::text::xid8)")

/* What has changed since a transaction, $8 and as text $10; 0 and the largest number: only which collections
 * are declared.  Documents: $1 class[], $2 id[], $3 number[]; collections: $4 class[], $5 name[], $6 value[],
 * $7 count of properties[], $9 number[].  The first or the last row holds the horizon, and whether what a
 * caller sees has changed by these documents alone: the rules with the mark $11 (0: any) were followed, and
 * none of its principals in teams was lost or gained, $12 class[], $13 principal[]. */
STATEMENT(
    LOOK, "live_look", 13,
    "select 0, 0::bigint, 0::bigint, s.epoch # coalesce((select mark from since_crash where one), 0), "
    "s.floor,"
    " pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
    " pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
    " ($11::bigint = 0 or (select r.mark = $11 and r.schema = c.number and r.since <= $10::text::xid8"
    " and r.floor < $10::text::xid8 from sight_rules r join schema c on c.one where r.one))"
    " and not exists (select from unnest($12::text[], $13::text[]) t(class, principal) cross join lateral"
    " (select from sight g where g.class = t.class and g.principal = t.principal"
    " and g.xid >= $10::text::xid8 limit 1) g)"
    " from namespace s where s.one"
    " union all"
    " select 1, d.number, coalesce(o.version, -1), null, null, null, null, null"
    " from unnest($1::text[], $2::text[], $3::bigint[]) d(class, id, number)"
    " left join doc o on o.class = d.class and o.id = d.id"
    " where o.id is null or ((o.xmin::text::bigint - $8::bigint) & 4294967295) < 2147483648"
    " union all"
    " select 2, c.number, case when o.number is null then -1 when cardinality(o.keys) <> c.count then -2"
    " else coalesce(m.version, 0) end, null, null, null, null, null"
    " from unnest($4::text[], $5::text[], $6::text[], $7::bigint[], $9::bigint[])"
    " c(class, name, value, count, number)"
    " left join collection o on o.class = c.class and o.name = c.name"
    " left join lateral (select b.version from member b where b.collection = o.number"
    " and b.value = c.value and b.xid >= $10::text::xid8"
    " order by b.collection desc, b.value desc, b.xid desc, b.id desc limit 1) m on true"
    " where o.number is null or cardinality(o.keys) <> c.count or m.version is not null"
    " or o.floor >= $10::text::xid8"
    " or ($8 > 0 and ((o.xmin::text::bigint - $8::bigint) & 4294967295) < 2147483648)")

/* $1 payload of the echo. */
STATEMENT(ROUND, "live_round", 1,
          "select 0, 0::bigint, 0::bigint, s.epoch # coalesce((select mark from since_crash where one), 0), "
          "s.floor,"
          " pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
          " pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_notify('stampd_live', $1)"
          " from namespace s where s.one")
