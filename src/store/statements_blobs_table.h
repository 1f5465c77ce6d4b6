/* The statements of attachments: part of statements_table.h (sql/0017_blobs.sql). */

/* Registers a file before it gets its digest; waits for a cleaner that removes it. $1 digest, $2 size. */
STATEMENT(BLOB_TOUCH, "blob_touch", 2, "select blob_touch($1, $2)")

/* The account $2 may attach the file $1 for $3 seconds.  False: there is no such file. */
STATEMENT(BLOB_CLAIM, "blob_claim", 3, "select blob_claim($1, $2, $3)")

/* Sizes of the files $1[] that the account $2 has claimed (null: of all that are there), by their places in
 * the list. */
STATEMENT(BLOB_FIND, "blob_find", 2,
          "select u.n, b.size from unnest($1::text[]) with ordinality u(digest, n) cross join lateral ("
          "select size from blob b where b.digest = decode(u.digest, 'hex') and not b.removing"
          " and ($2::text is null or exists (select from blob_claim c where c.digest = b.digest and"
          " c.account = $2 and c.until > stamp_now()))) b")

/* The object store that has the file, the name of the object, and its header. $1 digest. */
STATEMENT(BLOB_OBJECT, "blob_object", 1,
          "select b.store, b.object, encode(b.head, 'hex') from blob b where b.digest = decode($1, 'hex') "
          "and b.store is not null")

/* The reference of a document to a file, a live one first. $1 class, $2 id, $3 digest. */
STATEMENT(BLOB_REFERENCE, "blob_reference", 3,
          "select r.key, r.mime, b.size, r.ended is null from blob_ref r cross join lateral ("
          "select size from blob b where b.digest = r.digest) b"
          " where r.class = $1 and r.id = $2 and r.digest = decode($3, 'hex')"
          " order by r.ended is not null limit 1")
