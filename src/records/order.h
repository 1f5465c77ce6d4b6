/* order: pieces in an order, as a tree: a treap, whose shape depends on a secret seed and on nothing that a
 * client decides, so its depth is that of a random tree.  All changes are notes of undo.h. */
#ifndef STAMPD_RECORDS_ORDER_H
#define STAMPD_RECORDS_ORDER_H

#include "records/undo.h"

/* An order of one kind of piece. */
struct ordering {
    uint32_t *root; /* in the shared memory */
    uint32_t
        branches; /* which of a piece's words are its branches: this one, smaller, and the next, greater */
    uint64_t seed;
    /* Below 0: the first one comes before.  Never 0 for two pieces of the tree. */
    int (*compare)(const struct memory *memory, uint32_t a, uint32_t b);
};

void order_add(const struct memory *memory, const struct ordering *order, uint32_t piece);
void order_remove(const struct memory *memory, const struct ordering *order, uint32_t piece);
/* The first of all; 0: none. */
uint32_t order_first(const struct memory *memory, const struct ordering *order);
/* The first for which the probe is not above 0, where `probe` compares what is sought with a piece. */
uint32_t order_find(const struct memory *memory, const struct ordering *order,
                    int (*probe)(const struct memory *memory, const void *sought, uint32_t piece),
                    const void *sought);

#endif
