/* documents_private: shared by documents.c and transaction.c only. */
#ifndef STAMPD_DOCUMENT_DOCUMENTS_PRIVATE_H
#define STAMPD_DOCUMENT_DOCUMENTS_PRIVATE_H

#include "document/cache.h"
#include "document/documents.h"
#include "segment/feed.h"
#include "segment/metrics.h"
#include "segment/namespaces.h"

/* The index of a database, which never changes. */
struct known_ns {
    char database[NAMESPACES_DATABASE_BYTES];
    unsigned char size; /* 0: nothing known here */
    int ns;
};
enum { KNOWN_NAMESPACES = 64 };

struct documents {
    const struct settings *settings;
    struct segment *segment;
    struct store *store;
    struct cache *cache;
    struct publisher *publisher; /* by which commits are told to who listens */
    struct pulse *pulse;
    int64_t now_ms;      /* monotonic, read at the start of the request */
    int64_t deadline_ms; /* of the request */
    bool other_hosts;    /* hosts = many: stamps do not tell of all changes */
    bool must_exit;
    struct known_ns known_namespaces[KNOWN_NAMESPACES];
};

/* A document as it was found, with what is needed to prove later that it is still the newest. */
struct found {
    struct document *document; /* the arena's reference */
    uint64_t hash;
    uint64_t tag; /* the slot's stamp seen before the copy was loaded, or seen unmoved */
    uint32_t slot;
    bool was_busy;      /* a mark was seen with the tag */
    bool from_database; /* loaded just now, not taken from the cache */
};

/* read(doc, tolerance 0) of freshness.md for a list of names.  No document: those before it take
 * `bytes_most`. */
MUST_USE enum fault documents_find_newest(struct documents *documents, int ns, struct arena *arena,
                                          const struct name *names, size_t count, size_t bytes_most,
                                          struct found *found_r);
/* A copy at most `tolerance_ms` old, from the cache or loaded. */
MUST_USE enum fault documents_find_tolerated(struct documents *documents, int ns, struct arena *arena,
                                             struct name name, int64_t tolerance_ms, struct found *found_r);
/* Has it ended by itself?  Then it becomes one that does not exist, in the arena. */
void documents_judge_expiry(struct arena *arena, struct found *found);
/* It had not; has it by now? */
MUST_USE bool documents_has_ended(const struct found *found);
/* Is it a document that operations of this worker write, as far as is known?  Then its slot. */
MUST_USE bool documents_is_written(struct documents *documents, int ns, struct name name, uint32_t *slot_r);
void documents_set_written(struct documents *documents, int ns, const struct found *found, bool is_written);
/* What this worker has written, in the cache and in the shared cache, unless its end is not known.
 * `is_tagged`: `tag` proves it. */
void documents_keep_written(struct documents *documents, int ns, const struct found *found,
                            struct document *document, bool is_tagged, uint64_t tag);
/* Tells who listens of what was committed: the documents at `version`, and those that got copies. */
void documents_tell(struct documents *documents, int ns, struct arena *arena, const struct commit *commit,
                    int64_t version);
/* The cached copy of the name proves nothing any more. */
void documents_distrust(struct documents *documents, int ns, const struct found *found);

#endif
