/* request_counts: the requests that the workers of this host have answered, by namespace, operation and class
 * of their fault, for the metrics. */
#ifndef STAMPD_SEGMENT_COUNTS_REQUEST_COUNTS_H
#define STAMPD_SEGMENT_COUNTS_REQUEST_COUNTS_H

#include "base/bytes.h"
#include "segment/counts/named_counts.h"
#include "segment/segment.h"

/* REQUEST_COUNTS_CLASSES: the first letter of a fault's code; 0: no fault. */
#define REQUEST_COUNTS_CLASSES "ANBXDCOS"
enum { REQUEST_COUNTS_NAMES = 1024 };

/* For request_counts.c and the layout of the segment only. */
struct request_counts_board {
    struct named_counts_entry entries[REQUEST_COUNTS_NAMES + 1]; /* of "NAMESPACE OPERATION" */
};

/* Counts a request; `code` of its fault, NULL: none.  Both words are names that an administrator or this
 * server has chosen, or empty: a client's text would fill the table. */
void request_counts_add(struct segment *segment, struct bytes ns, struct bytes what, const char *code);

/* What is counted at a place, from 0 to REQUEST_COUNTS_NAMES, in the order of 0 and the classes; the last
 * place has what the table has no room for.  False: nothing. */
struct request_counts {
    char ns[NAMED_COUNTS_BYTES + 1], what[NAMED_COUNTS_BYTES + 1];
    uint64_t counts[NAMED_COUNTS_MOST];
};
bool request_counts_read(const struct segment *segment, size_t place, struct request_counts *counts_r);

/* For board.c. */
size_t request_counts_size(const struct board_sizes *sizes);
void request_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
