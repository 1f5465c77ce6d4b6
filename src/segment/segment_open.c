/* segment_open: maps the file and gives each tenant its part; stands above the tenants. */
#include "segment/segment_open.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "segment/board.h"
#include "segment/processes.h"
#include "segment/public_answers.h"
#include "segment/shared_cache.h"
#include "segment/slots.h"

bool segment_open(struct segment **segment_r, const char *path, uint32_t slots, size_t shared_cache_bytes,
                  char *problem, size_t problem_size)
{
    const struct board_sizes sizes = {.slots = slots, .shared_cache_bytes = shared_cache_bytes};
    return segment_open_sized(segment_r, path, &sizes, problem, problem_size);
}

bool segment_open_sized(struct segment **segment_r, const char *path, const struct board_sizes *sizes,
                        char *problem, size_t problem_size)
{
    assert(sizes->slots % 64 == 0 && (sizes->slots & (sizes->slots - 1)) == 0);
    struct segment *segment = memory_zeroed(1, sizeof *segment, "opening the segment");
    if (!mapping_open(&segment->mapping, path, SEGMENT_MAGIC, BOARD_LAYOUT, board_size(sizes), problem,
                      problem_size)) {
        free(segment);
        return false;
    }
    segment->index = SEGMENT_NO_INDEX;
    board_init(segment, sizes);
    const char *other = !slots_agree(segment)            ? "segment_slots"
                        : !public_answers_agree(segment) ? "public_answers_mb"
                                                         : NULL;
    if (other) { /* different table sizes may add up to the same total */
        snprintf(problem, problem_size, "segment %s: in use with another %s", path, other);
        segment_close(segment);
        return false;
    }
    *segment_r = segment;
    return true;
}

void segment_close(struct segment *segment)
{
    if (!segment)
        return;
    shared_cache_destroy(segment->shared_cache);
    mapping_close(&segment->mapping);
    free(segment);
}

void segment_open_erase(struct segment *segment)
{
    mapping_erase(&segment->mapping);
}

void segment_join(struct segment *segment, int index)
{
    assert(index >= 0 && index < processes_count(segment)); /* taken, so readers check its word */
    segment->index = index;
    board_recover(segment, index);
}
