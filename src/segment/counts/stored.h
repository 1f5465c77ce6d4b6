/* stored: the bytes that each namespace stores, and those of its classes that have a quota
 * (operation/quota.h): the sums over all documents that were measured, and what the workers of this host have
 * added and removed since.
 *
 * The numbers are exact when nothing else writes.  Until the next measurement they lack what other hosts and
 * programs write, and they count commits twice that end while it is made.  The keeper measures each namespace
 * that is on, and its classes once they have such a quota. */
#ifndef STAMPD_SEGMENT_COUNTS_STORED_H
#define STAMPD_SEGMENT_COUNTS_STORED_H

#include "base/bytes.h"
#include "segment/namespaces.h"

enum { STORED_CODE_BYTES = 16, STORED_SUMS = 17 /* the namespace and 16 classes */ };
/* All bytes; those of attachments. */
enum stored_kind { STORED_BYTES, STORED_FILE_BYTES, STORED_KINDS };

struct stored_volume {
    struct bytes class; /* NO_BYTES: the namespace */
    int64_t bytes[STORED_KINDS];
};

/* A commit has changed the sums of the class, and so those of the namespace. */
void stored_add(struct segment *segment, int ns, struct bytes class, const int64_t bytes[STORED_KINDS]);
/* The namespace with this code, or a class of it, is to be measured.  The number of its sum;
 * -1: there are too many classes, which had a quota since the segment was created. */
int stored_want(struct segment *segment, int ns, struct bytes code, struct bytes class);
/* The namespace is off, or has been dropped: nothing is known of it until it is measured again. */
void stored_forget(struct segment *segment, int ns);

/* A measurement: the sums of all classes, of a snapshot taken after stored_begin. */
struct stored_measurement {
    int64_t grown[STORED_SUMS][STORED_KINDS];
    uint64_t classes[STORED_SUMS];
};
void stored_begin(const struct segment *segment, int ns, struct stored_measurement *measurement_r);
/* Or only the sum of the namespace? */
bool stored_has_classes(const struct stored_measurement *measurement);
void stored_end(struct segment *segment, int ns, const struct stored_measurement *measurement,
                const struct stored_volume *volumes, size_t count);
/* False: not measured yet. */
MUST_USE bool stored_read(const struct segment *segment, int ns, int sum, int64_t bytes_r[STORED_KINDS]);
void stored_code(const struct segment *segment, int ns, char code_r[STORED_CODE_BYTES + 1]);

/* --- layout in the segment --- */
struct stored {
    struct stored_sum {
        _Alignas(64) _Atomic uint64_t
            class; /* hash of its name; 0: none, nor behind it; of the first: 1, once it is wanted */
        _Atomic int64_t grown[STORED_KINDS]; /* by workers, since the segment was created */
        _Atomic int64_t base[STORED_KINDS];  /* with `grown`: the bytes stored */
        _Atomic uint32_t is_measured;
    } sums[STORED_SUMS];
    _Alignas(64) _Atomic uint64_t code[STORED_CODE_BYTES / 8];
};

/* For board.c. */
size_t stored_size(const struct board_sizes *sizes);
void stored_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
