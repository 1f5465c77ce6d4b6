/* processes: a table of the processes of this host that may commit, in the shared segment.  An entry belongs
 * to one instance of stampd; its index is the process's bit in the marks of slots. */
#ifndef STAMPD_SEGMENT_PROCESSES_H
#define STAMPD_SEGMENT_PROCESSES_H

#include "segment/segment.h"

enum process_state { PROCESS_FREE, PROCESS_HELD, PROCESS_DIRTY };

/* Takes at most `count` entries that belong to no instance; returns the number taken. `lock_file` is the
 * inode of the instance's lock file. */
MUST_USE int processes_take(struct segment *segment, uint32_t instance, uint64_t lock_file, int count,
                            int *indexes_r);
enum process_state processes_state(const struct segment *segment, int index);
void processes_set(struct segment *segment, int index, enum process_state state, uint32_t pid);
uint32_t processes_instance(const struct segment *segment, int index); /* 0: none */
uint64_t processes_lock_file(const struct segment *segment, int index);
uint32_t processes_pid(const struct segment *segment, int index);
/* The namespace where a commit may be in flight; -1: none. */
int processes_namespace(const struct segment *segment, int index);
void processes_set_namespace(struct segment *segment, int index, int ns);
int processes_count(const struct segment *segment); /* no entry at this index or above was ever taken */
void processes_release(struct segment *segment, int index); /* FREE, and belongs to no instance */

/* For board.c. */
size_t processes_size(const struct board_sizes *sizes);
void processes_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
