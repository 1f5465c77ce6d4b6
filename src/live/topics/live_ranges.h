/* live_ranges: definitions of ranges of records: which of them have a key.
 *
 * They are sorted when a key is sought after listeners have come or gone, and then found without looking at
 * the others: those that end before the key, or begin behind it, are passed many at a time. */
#ifndef STAMPD_LIVE_TOPICS_LIVE_RANGES_H
#define STAMPD_LIVE_TOPICS_LIVE_RANGES_H

#include "live/topics/live_index.h"

struct live_ranges;

struct live_ranges *live_ranges_create(void) __attribute__((returns_nonnull));
void live_ranges_destroy(struct live_ranges *ranges);
/* A listener that names a range has joined the index, or leaves it. */
void live_ranges_change(struct live_ranges *ranges);
/* Calls `see` with each range of the index that has the key; it must not change the index.  Returns how many
 * were looked at. */
size_t live_ranges_each(struct live_ranges *ranges, const struct live_index *index, struct bytes key,
                        void (*see)(void *context, const struct definition *definition), void *context);

#endif
