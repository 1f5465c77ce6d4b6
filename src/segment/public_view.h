/* public_view: what nginx reads of the shared segment: the slots, and the answers that anybody may have
 * (public_answers.h).  It stands alone, for the module of nginx (nginx/module), which maps the beginning of
 * the segment's file read-only.
 *
 * Nothing that is read is trusted: a writer may have died in the middle, the segment may be made anew at
 * any moment, and a byte may be anything.  Sizes and offsets are compared with those of the mapping before
 * they are used, an answer is copied before it is examined, and each entry is read once, so the work is
 * bounded.  No lock is taken, and nothing is written.  The file must not become shorter than what is mapped;
 * no process of stampd cuts it (edge/mapping.c). */
#ifndef STAMPD_SEGMENT_PUBLIC_VIEW_H
#define STAMPD_SEGMENT_PUBLIC_VIEW_H

#include "base/bytes.h"
#include "segment/segment.h"
#include "segment/slots.h"

enum {
    PUBLIC_ENTRY_BYTES = 4096, /* of the table: an answer and what proves it */
    PUBLIC_WAYS = 4,           /* places where an answer may be */
    PUBLIC_PROOFS_MOST = 4,    /* slots that prove it */
    PUBLIC_NAME_BYTES = 512,   /* longest name */
    PUBLIC_BEAT_MS = 3000      /* a master that has not beaten for so long is taken for dead */
};

/* In place of a class, which begins with a capital: the id is the query of an operation `get`. */
#define PUBLIC_GET "get"

/* A slot, and the stamp under which the answer is the newest. */
struct public_proof {
    uint64_t tag;
    uint32_t slot, reserved;
};

/* In an entry, followed by the texts in the order of their sizes. */
struct public_record {
    uint64_t form; /* digest of the settings of the worker that composed it */
    uint32_t proof_count;
    uint32_t name_size, etag_size, head_size, unchanged_size, body_size;
    struct public_proof proofs[PUBLIC_PROOFS_MOST];
};

enum {
    PUBLIC_RECORD_WORDS = (PUBLIC_ENTRY_BYTES - 2 * sizeof(uint64_t)) / sizeof(uint64_t),
    PUBLIC_TEXT_BYTES = PUBLIC_RECORD_WORDS * sizeof(uint64_t) - sizeof(struct public_record)
};

struct public_entry {
    _Atomic uint64_t lock; /* as that of the shared cache: a count above, 1 + index of the writer below */
    _Atomic uint64_t hash; /* 0: it is empty */
    _Atomic uint64_t words[PUBLIC_RECORD_WORDS];
};

/* The lock: a count above, 1 + index of the writer below; 0: no writer. */
enum { PUBLIC_OWNER_BITS = 16, PUBLIC_OWNER_MASK = (1 << PUBLIC_OWNER_BITS) - 1 };

struct public_answers_head {
    _Alignas(64) _Atomic uint64_t form; /* of the present settings; 0: nothing may be answered */
    _Atomic int64_t beat_ms;            /* monotonic: when the master was last known to live */
    _Atomic uint64_t count;             /* of entries; 0: no process has attached yet */
    _Atomic uint64_t served;            /* answers that nginx has reported */
    _Alignas(64) struct public_entry entries[];
};

/* The mapping, and the sizes that it had when it was examined. */
struct public_view {
    const struct mapping_head *mapping;
    uint64_t file_size;
    struct segment segment; /* the slots, and nothing else */
    const struct public_answers_head *head;
    uint64_t count;
};

/* An answer, in the memory of the copy. */
struct public_answer {
    struct bytes etag;            /* with its quotes; empty: none, and no 304 */
    struct bytes head, unchanged; /* lines of a CGI head, each with its end: of 200, of 304 */
    struct bytes body;
};
/* Room for one; aligned for words. */
struct public_copy {
    uint64_t words[PUBLIC_RECORD_WORDS];
};

/* How many bytes of the file are to be mapped, from its start; false: it is no segment of this layout, is
 * being made, or holds no answers. */
MUST_USE bool public_view_measure(int fd, size_t *size_r);
/* Begins to use `memory`, of which `size` bytes are mapped; false: it is no segment of this layout. */
MUST_USE bool public_view_open(struct public_view *view, const void *memory, size_t size);

/* Whether it is the segment that was examined, and a master lives. */
bool public_view_is_living(const struct public_view *view);

/* The name under which an answer is stored, in `text_r`, of PUBLIC_NAME_BYTES; 0: it is too long. */
size_t public_view_name(struct bytes database, struct bytes ns, struct bytes class, struct bytes id,
                        char *text_r);
uint64_t public_view_hash(uint64_t seed, struct bytes name);

/* Whether there is an answer of this name that was, at one instant between call and return, what a worker
 * would have sent.  It is in `copy`. */
MUST_USE bool public_view_find(const struct public_view *view, struct bytes name, struct public_copy *copy,
                               struct public_answer *answer_r);

/* Where the answers are, behind so many slots. */
size_t public_view_answers_at(uint32_t slots);

#endif
