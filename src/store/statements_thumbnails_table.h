/* The statements of thumbnails: part of statements_table.h (sql/0022_thumbnails.sql). */

/* Why no thumbnails can be made of the files $1[], by their places in the list; of the others no row. */
STATEMENT(
    THUMBNAIL_REASONS, "thumbnail_reasons", 1,
    "select u.n, b.thumbnail from unnest($1::text[]) with ordinality u(digest, n) cross join lateral ("
    "select thumbnail from blob b where b.digest = decode(u.digest, 'hex') and b.thumbnail is not null) b")

/* Notes the reason $2 of the file $1. */
STATEMENT(THUMBNAIL_REFUSE, "thumbnail_refuse", 2,
          "update blob b set thumbnail = $2 where b.digest = decode($1, 'hex')")

/* A document is done. $1 class, $2 id, $3 the declaration, $4 the highest version of its items P. */
STATEMENT(THUMBNAIL_NOTE, "thumbnail_note", 4, "select thumbnail_note($1, $2, $3, $4)")

/* A page of the documents with attachments. $1 class, $2 the declaration, $3 after this id, $4 how many. */
STATEMENT(THUMBNAIL_PAGE, "thumbnail_page", 4,
          "select id, is_due from thumbnail_page($1, $2, $3, $4::bigint::int)")

/* Is a sweep due?  $1: not while so many tasks wait. */
STATEMENT(THUMBNAIL_DUE, "thumbnail_due", 1, "select thumbnail_sweep_due($1::bigint::int)")

/* The last sweep: number, began, class and id. */
STATEMENT(THUMBNAIL_SWEEP, "thumbnail_sweep", 0,
          "select s.number, s.began, s.class, s.id from thumbnail_sweep s where s.one")

/* It has come to $3, $4 (null: its end). $1 number, $2 began, $5 it begins.  Without effect when another one
 * has become due meanwhile. */
STATEMENT(THUMBNAIL_SWEPT, "thumbnail_swept", 5,
          "update thumbnail_sweep s set number = $1, began = $2, class = $3, id = $4"
          " where s.one and ($5::bigint = 1 or s.began = $2)")
