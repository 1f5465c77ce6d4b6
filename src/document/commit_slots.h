/* commit_slots: the slots of what a commit writes: of its documents and of their classes (freshness.md). */
#ifndef STAMPD_DOCUMENT_COMMIT_SLOTS_H
#define STAMPD_DOCUMENT_COMMIT_SLOTS_H

#include "base/arena.h"
#include "segment/slots.h"

struct commit_slots {
    const struct segment *segment;
    int ns;
    uint32_t *list;  /* no duplicates */
    uint64_t *own;   /* parallel to it: the stamps before the commit */
    uint64_t *moved; /* and at their move */
    size_t count;
    struct bytes last_class; /* whose slot was added last; NO_BYTES: none */
};

/* For so many documents at most. */
struct commit_slots commit_slots_open(const struct segment *segment, int ns, struct arena *arena,
                                      size_t documents);
/* Adds the slot of a document of the class, and that of the class.  `class` must stay until the next call. */
void commit_slots_add(struct commit_slots *slots, struct bytes class, uint32_t slot);
/* Where the slot, which was added, is in the list. */
size_t commit_slots_find(const struct commit_slots *slots, uint32_t slot);

#endif
