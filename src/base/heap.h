/* heap: an intrusive binary min-heap of pointers.  Each element stores its position, so that it can be
 * removed from the middle. */
#ifndef STAMPD_BASE_HEAP_H
#define STAMPD_BASE_HEAP_H

#include "base/base.h"

/* The first member of an element, which is in one heap at most. */
struct heap_link {
    size_t place; /* from 1; 0: not in a heap */
};

struct heap {
    bool (*is_before)(const struct heap_link *a, const struct heap_link *b);
    struct heap_link **elements;
    size_t count, capacity;
};

void heap_add(struct heap *heap, struct heap_link *element);
void heap_remove(struct heap *heap, struct heap_link *element);
/* The first element in the heap's order; NULL: the heap is empty. */
struct heap_link *heap_first(const struct heap *heap);
void heap_free(struct heap *heap);

#endif
