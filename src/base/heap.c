/* heap: an intrusive binary min-heap. */
#include "base/heap.h"

#include <stdlib.h>

#include "base/memory.h"

static void heap_set(struct heap *heap, size_t place, struct heap_link *element)
{
    heap->elements[place - 1] = element;
    element->place = place;
}

static struct heap_link *at(const struct heap *heap, size_t place)
{
    return heap->elements[place - 1];
}

static void rise(struct heap *heap, struct heap_link *element, size_t place)
{
    for (; place > 1 && heap->is_before(element, at(heap, place / 2)); place /= 2)
        heap_set(heap, place, at(heap, place / 2));
    heap_set(heap, place, element);
}

static void sink(struct heap *heap, struct heap_link *element, size_t place)
{
    for (size_t child; (child = 2 * place) <= heap->count; place = child) {
        if (child < heap->count && heap->is_before(at(heap, child + 1), at(heap, child)))
            child++;
        if (!heap->is_before(at(heap, child), element))
            break;
        heap_set(heap, place, at(heap, child));
    }
    heap_set(heap, place, element);
}

void heap_add(struct heap *heap, struct heap_link *element)
{
    assert(!element->place);
    if (heap->count == heap->capacity) {
        size_t capacity = heap->capacity ? 2 * heap->capacity : 64;
        heap->elements = memory_grown(heap->elements, capacity, sizeof *heap->elements, "heap");
        heap->capacity = capacity;
    }
    heap->count++;
    rise(heap, element, heap->count);
}

void heap_remove(struct heap *heap, struct heap_link *element)
{
    size_t place = element->place;
    assert(place && place <= heap->count && at(heap, place) == element);
    struct heap_link *last = at(heap, heap->count);
    heap->count--;
    element->place = 0;
    if (last == element)
        return;
    if (place > 1 && heap->is_before(last, at(heap, place / 2)))
        rise(heap, last, place);
    else
        sink(heap, last, place);
}

struct heap_link *heap_first(const struct heap *heap)
{
    return heap->count ? heap->elements[0] : NULL;
}

void heap_free(struct heap *heap)
{
    free(heap->elements);
    heap->elements = NULL;
    heap->count = heap->capacity = 0;
}
