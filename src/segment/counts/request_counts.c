/* request_counts: a table of the segment. */
#include "segment/counts/request_counts.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof REQUEST_COUNTS_CLASSES <= NAMED_COUNTS_MOST,
               "a count for each class, and one for none");

/* The number of the class of a code; what no class has is of the unexpected. */
static int number_of(const char *code)
{
    const char *class = code && *code ? strchr(REQUEST_COUNTS_CLASSES, *code) : NULL;
    if (!code)
        return 0;
    return 1 + (int)((class ? class : strchr(REQUEST_COUNTS_CLASSES, 'X')) - REQUEST_COUNTS_CLASSES);
}

void request_counts_add(struct segment *segment, struct bytes ns, struct bytes what, const char *code)
{
    struct named_counts_entry *entries = segment->request_counts->entries;
    char name[NAMED_COUNTS_BYTES];
    size_t place = REQUEST_COUNTS_NAMES, size = ns.size + 1 + what.size;
    if (size <= sizeof name) {
        memcpy(name, ns.data, ns.size);
        name[ns.size] = ' ';
        memcpy(name + ns.size + 1, what.data, what.size);
        place = named_counts_place_in(entries, REQUEST_COUNTS_NAMES, (struct bytes){name, size});
    }
    atomic_fetch_add_explicit(&entries[place].counts[number_of(code)], 1, memory_order_relaxed);
}

bool request_counts_read(const struct segment *segment, size_t place, struct request_counts *counts_r)
{
    char name[NAMED_COUNTS_BYTES + 1];
    if (!named_counts_read_in(segment->request_counts->entries, REQUEST_COUNTS_NAMES, place, name,
                              counts_r->counts))
        return false;
    size_t size = strcspn(name, " ");
    memcpy(counts_r->ns, name, size);
    counts_r->ns[size] = '\0';
    snprintf(counts_r->what, sizeof counts_r->what, "%s", name[size] ? name + size + 1 : "");
    return true;
}

size_t request_counts_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct request_counts_board);
}

void request_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->request_counts = memory;
}
