/* order: insertion splits a subtree, removal merges two; no rotations, no parents. */
#include "records/order.h"

#include "base/coding/hash.h"

enum { SMALLER, GREATER };

static uint32_t *branch(const struct memory *memory, const struct ordering *order, uint32_t piece, int side)
{
    return &memory->words[piece + 1 + order->branches + (uint32_t)side];
}

/* The heap order of the treap. */
static uint64_t weight(const struct ordering *order, uint32_t piece)
{
    return hash_mix(piece ^ order->seed);
}

void order_add(const struct memory *memory, const struct ordering *order, uint32_t piece)
{
    uint32_t *link = order->root, rest;
    uint64_t own = weight(order, piece);
    while (*link && weight(order, *link) >= own)
        link = branch(memory, order, *link, order->compare(memory, piece, *link) < 0 ? SMALLER : GREATER);
    rest = *link;
    undo_set(memory, link, piece);
    uint32_t *smaller = branch(memory, order, piece, SMALLER),
             *greater = branch(memory, order, piece, GREATER);
    while (rest) {
        if (order->compare(memory, rest, piece) < 0) {
            undo_set(memory, smaller, rest);
            smaller = branch(memory, order, rest, GREATER);
            rest = *smaller;
        } else {
            undo_set(memory, greater, rest);
            greater = branch(memory, order, rest, SMALLER);
            rest = *greater;
        }
    }
    undo_set(memory, smaller, 0);
    undo_set(memory, greater, 0);
}

void order_remove(const struct memory *memory, const struct ordering *order, uint32_t piece)
{
    uint32_t *link = order->root;
    while (*link != piece) {
        assert(*link);
        link = branch(memory, order, *link, order->compare(memory, piece, *link) < 0 ? SMALLER : GREATER);
    }
    uint32_t smaller = *branch(memory, order, piece, SMALLER);
    uint32_t greater = *branch(memory, order, piece, GREATER);
    while (smaller && greater) {
        bool is_smaller = weight(order, smaller) >= weight(order, greater);
        uint32_t top = is_smaller ? smaller : greater;
        undo_set(memory, link, top);
        link = branch(memory, order, top, is_smaller ? GREATER : SMALLER);
        if (is_smaller)
            smaller = *link;
        else
            greater = *link;
    }
    undo_set(memory, link, smaller ? smaller : greater);
}

uint32_t order_first(const struct memory *memory, const struct ordering *order)
{
    uint32_t piece = *order->root;
    while (piece && *branch(memory, order, piece, SMALLER))
        piece = *branch(memory, order, piece, SMALLER);
    return piece;
}

uint32_t order_find(const struct memory *memory, const struct ordering *order,
                    int (*probe)(const struct memory *memory, const void *sought, uint32_t piece),
                    const void *sought)
{
    uint32_t found = 0;
    for (uint32_t piece = *order->root; piece;) {
        bool is_at_most = probe(memory, sought, piece) <= 0;
        if (is_at_most)
            found = piece;
        piece = *branch(memory, order, piece, is_at_most ? SMALLER : GREATER);
    }
    return found;
}
