/* document: an immutable snapshot of one document, with its JSON ready to send.
 *
 * A snapshot is one reference-counted block of memory.  It never changes, except for `until`, which is
 * derived from the contents and the applied schema.  It holds all live items and all tombstones newer than
 * `dtime`, sorted by class and key.  A document that does not exist has a snapshot too (`ctime` 0, no items):
 * its `version` is then that of its zombie row, 0 when there is no row.  Pure: no I/O (protocol.md,
 * "Documents"). */
#ifndef STAMPD_MODEL_DOCUMENT_DOCUMENT_H
#define STAMPD_MODEL_DOCUMENT_DOCUMENT_H

#include "base/base.h"
#include "base/bytes.h"
#include "model/document/item.h"

struct header {
    struct bytes class; /* ^[A-Z][A-Za-z0-9]{0,15}$ */
    struct bytes id;    /* 1 to 255 bytes of UTF-8 */
    int64_t version;    /* stamp of the last operation that changed it; see above when it does not exist */
    int64_t ctime;      /* creation of this incarnation; 0: does not exist */
    int64_t dtime;      /* all later removals are known */
    int64_t v1;         /* bytes of the keys and contents of its live items */
    int64_t v2;         /* bytes of its attachments */
    int64_t floor;      /* no row: a new document's version must be above this (commit.md section 6) */
};

/* What the document stores, attachments included, as quotas count it. */
static inline int64_t header_bytes(const struct header *header)
{
    return header->v1 + header->v2;
}

/* The document does not expire. */
#define DOCUMENT_FOREVER INT64_MAX

struct document {
    struct header header;
    int64_t until;  /* minute since 1970 in which it expires, by its class (expiry.h) */
    bool has_ended; /* it has expired: it does not exist, but its row and items are still there */
    uint32_t references;
    uint32_t item_count; /* tombstones included */
    uint32_t tombstone_count;
    int64_t oldest_tombstone, newest_tombstone; /* their lowest and highest version; 0: none */
    size_t block_bytes;                         /* memory of the whole snapshot */
    /* {"c":…,"id":…,"v":…,"ct":…,"dt":…,"items":[live items]}; a document that does not exist: v, ct, dt 0,
     * no items. */
    struct bytes json;
    size_t json_header; /* length of the part before `,"items":[` */
    struct item items[];
};

/* Builds a snapshot from a header and sorted items without duplicates; copies everything, computes v1, starts
 * with one reference.  Does not read the items' `json`.  ctime 0: item_count must be 0.  Tombstones not newer
 * than dtime are kept: a draft purges them with the next change. */
struct document *document_build(const struct header *header, const struct item *items, size_t item_count)
    __attribute__((returns_nonnull));

/* Builds the successor of `copy` (same incarnation) from a header and items loaded above
 * copy->header.version, or committed on top of it: `newer` items replace those of the copy or are added,
 * tombstones not newer than header->dtime are dropped.  `newer` is sorted without duplicates, its `json` is
 * not read; unchanged items keep their ready JSON. */
struct document *document_merge(const struct document *copy, const struct header *header,
                                const struct item *newer, size_t newer_count)
    __attribute__((returns_nonnull));

/* The snapshot of an expired document: one that does not exist, with its version. */
struct document *document_end(const struct document *document) __attribute__((returns_nonnull));

struct document *document_hold(struct document *document);
void document_release(struct document *document); /* NULL is allowed */

static inline bool document_exists(const struct document *document)
{
    return document->header.ctime != 0;
}

/* The memory cost of an item in a document: its JSON, with the comma between two, and the struct.  And the
 * total cost of a document's live items. */
int64_t document_item_cost(const struct item *item);
int64_t document_cost(const struct document *document);

/* Binary search; also finds tombstones; NULL: not found. */
const struct item *document_find_item(const struct document *document, struct bytes iclass, struct bytes key);

/* --- document pack --- */

/* A position-independent snapshot for memory that processes share.  The snapshot is one block
 * already; only its pointers become offsets from its start.  Writer and reader are the same program: this is
 * not a file or wire format. */

/* Writes document->block_bytes bytes to `into`, which is aligned for any type. */
void document_pack(const struct document *document, void *into);
/* Builds a separate snapshot from such bytes, aligned for any type; NULL when they are not valid. */
struct document *document_unpack(const void *packed, size_t size);

#endif
