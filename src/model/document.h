/* document: an immutable snapshot of one document, with its JSON ready to send.
 *
 * A snapshot is one block of memory, counted by references; nothing in it ever changes but
 * `until`, which follows from the contents and the schema that is applied.  It knows all live
 * items and all tombstones newer than `dtime`, sorted by class and key.  A document that does not exist has a
 * snapshot too (`ctime` 0, no items): its `version` is then that of its zombie row, 0 when there is no row.
 * Pure: no I/O (seed 000, "Documents et items", "Mémoires persistante de référence et cache"). */
#ifndef STAMPD_MODEL_DOCUMENT_H
#define STAMPD_MODEL_DOCUMENT_H

#include "base/base.h"
#include "base/bytes.h"
#include "model/item.h"

struct header {
    struct bytes class; /* ^[A-Z][A-Za-z0-9]{0,15}$ */
    struct bytes id;    /* 1 to 255 bytes of UTF-8 */
    int64_t version;    /* stamp of the operation that changed it last; see above when it does not exist */
    int64_t ctime;      /* birth of this life; 0: does not exist */
    int64_t dtime;      /* removals later than this are known */
    int64_t v1;         /* bytes of the keys and contents of its live items */
    int64_t v2;         /* bytes of its attachments */
    int64_t floor;      /* no row: a version given at birth must be above this (commit.md section 6) */
};

/* An end that never comes. */
#define DOCUMENT_FOREVER INT64_MAX

struct document {
    struct header header;
    int64_t until;  /* minute since 1970 in which it ends by itself, as its class says (life.h) */
    bool has_ended; /* it did: nothing exists, but the row and the items of that life are still there */
    uint32_t references;
    uint32_t item_count; /* tombstones included */
    uint32_t tombstone_count;
    int64_t oldest_tombstone, newest_tombstone; /* their lowest and highest version; 0 when there is none */
    size_t block_bytes;                         /* memory of the whole snapshot */
    /* {"c":…,"id":…,"v":…,"ct":…,"dt":…,"items":[live items]}; not existing: v, ct, dt 0, no items. */
    struct bytes json;
    size_t json_header; /* its first bytes up to before `,"items":[` */
    struct item items[];
};

/* Builds a snapshot from a header and items sorted without doubles; copies everything, computes v1, starts
 * with one reference.  Items' `json` is not read.  ctime 0: item_count must be 0.  Tombstones not newer than
 * dtime are kept: a draft purges them with the next change. */
struct document *document_build(const struct header *header, const struct item *items, size_t item_count)
    __attribute__((returns_nonnull));

/* What has become of `copy` (same life) when `header` and `newer` were loaded above copy->header.version, or
 * are a commit on top of it: newer replace or join the copy's items, tombstones not newer than header->dtime
 * go.  `newer` is sorted without doubles, its `json` is not read; unchanged items keep their ready JSON. */
struct document *document_merge(const struct document *copy, const struct header *header,
                                const struct item *newer, size_t newer_count)
    __attribute__((returns_nonnull));

/* What is left of a document that has ended by itself: one that does not exist, with its version. */
struct document *document_end(const struct document *document) __attribute__((returns_nonnull));

struct document *document_hold(struct document *document);
void document_release(struct document *document); /* NULL is allowed */

static inline bool document_exists(const struct document *document)
{
    return document->header.ctime != 0;
}

/* What an item costs in a document: its JSON, with the comma between two, and the struct.  And what the live
 * items of a document cost together. */
int64_t document_item_cost(const struct item *item);
int64_t document_cost(const struct document *document);

/* Binary search; tombstones are found too; NULL when there is none. */
const struct item *document_find_item(const struct document *document, struct bytes iclass, struct bytes key);

#endif
