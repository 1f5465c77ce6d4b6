/* board: the layout of the shared segment.
 *
 * Each table in the segment is a tenant.  Its module declares
 *
 *   size_t X_size(const struct board_sizes *sizes)                    bytes that it needs
 *   void X_init(struct segment *segment, void *memory, const struct board_sizes *sizes)
 *                                                                     sets its fields of the handle
 *
 * and X_recover(segment, index), if a process can die while it holds something there.  The memory starts
 * zeroed, and zero is a valid initial state of every tenant: a new segment needs no initialisation, and an
 * instance may attach at any moment.
 *
 * The slots and the public answers come first: nginx maps these and nothing behind them (public_view.h). */
#ifndef STAMPD_SEGMENT_BOARD_H
#define STAMPD_SEGMENT_BOARD_H

#include "segment/segment.h"

enum { BOARD_LAYOUT = 40 }; /* raised when any tenant changes */

/* Bytes of the whole segment. */
size_t board_size(const struct board_sizes *sizes);
/* Gives every tenant its part of the mapped memory. */
void board_init(struct segment *segment, const struct board_sizes *sizes);
/* For segment_join: recovers what the former process of this index left. */
void board_recover(struct segment *segment, int index);

#endif
