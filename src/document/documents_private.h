/* documents_private: shared by documents.c and the files of a transaction. */
#ifndef STAMPD_DOCUMENT_DOCUMENTS_PRIVATE_H
#define STAMPD_DOCUMENT_DOCUMENTS_PRIVATE_H

#include "document/cache.h"
#include "document/documents.h"
#include "segment/feed.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"
#include "store/documents/store_commit.h"

/* The index of a database, which never changes. */
struct known_ns {
    char database[NAMESPACES_DATABASE_BYTES];
    unsigned char size; /* 0: the entry is empty */
    int ns;
};
enum { KNOWN_NAMESPACES = 64 };

struct documents {
    const struct settings *settings;
    struct segment *segment;
    struct store *store;
    struct cache *cache;
    struct publisher *publisher; /* sends commits to subscribers */
    struct pulse *pulse;
    int64_t now_ms;      /* monotonic, read at the start of the request */
    int64_t deadline_ms; /* of the request */
    bool other_hosts;    /* hosts = many: stamps do not cover all changes */
    bool must_exit;
    struct store *replica; /* of standbys; NULL: none is read */
    uint64_t drops;        /* lineage_drops when the copies were dropped last */
    struct known_ns known_namespaces[KNOWN_NAMESPACES];
};

/* A document as found, with the data to prove later that it is still the newest. */
struct found {
    struct document *document; /* the arena's reference */
    uint64_t hash;
    uint64_t tag; /* the slot's stamp seen before the copy was loaded, or seen unmoved */
    uint32_t slot;
    bool was_busy;      /* a mark was seen with the tag */
    bool from_database; /* loaded just now, not taken from the cache */
};

/* read(doc, tolerance 0) of freshness.md for a list of names.  A name gets no document if those before it
 * take `bytes_most`. */
MUST_USE enum fault documents_find_newest(struct documents *documents, int ns, struct arena *arena,
                                          const struct document_name *names, size_t count, size_t bytes_most,
                                          struct found *found_r);
/* A copy at most `tolerance_ms` old, from the cache or loaded. */
MUST_USE enum fault documents_find_tolerated(struct documents *documents, int ns, struct arena *arena,
                                             struct document_name name, int64_t tolerance_ms,
                                             struct found *found_r);
/* The same from a standby, if that is proven so young; `found` is as look_up has left it.  False: unchanged,
 * ask the primary. */
MUST_USE bool documents_find_on_replica(struct documents *documents, int ns, struct arena *arena,
                                        struct document_name name, int64_t tolerance_ms, struct found *found);
/* If the document has expired, replaces it by one that does not exist, in the arena. */
void documents_judge_expiry(struct arena *arena, struct found *found);
/* Whether a document that had not expired has expired by now. */
MUST_USE bool documents_has_ended(const struct found *found);
/* Whether operations of this worker are known to write the document; if so, `slot_r` gets its slot. */
MUST_USE bool documents_is_written(struct documents *documents, int ns, struct document_name name,
                                   uint32_t *slot_r);
void documents_set_written(struct documents *documents, int ns, const struct found *found, bool is_written);
/* Stores what this worker has written in the cache and in the shared cache, unless its expiry is unknown.
 * `is_tagged`: `tag` proves it the newest. */
void documents_keep_written(struct documents *documents, int ns, const struct found *found,
                            struct document *document, bool is_tagged, uint64_t tag);
/* Sends the commit to subscribers: the documents at `version`, and those that got copies. */
void documents_announce(struct documents *documents, int ns, struct arena *arena, const struct commit *commit,
                        int64_t version);
/* Invalidates the cached copy of the name. */
void documents_distrust(struct documents *documents, int ns, const struct found *found);

#endif
