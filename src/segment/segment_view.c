/* segment_view: compares the head of the file, and maps it. */
#include "segment/segment_view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "segment/board.h"
#include "segment/shared_cache.h"

/* NULL: it is the segment of such a server; otherwise what is wrong. */
static const char *segment_view_examine(int fd, size_t size)
{
    struct mapping_head head;
    struct stat status;
    if (fstat(fd, &status) || bytes_read_at(fd, (unsigned char *)&head, sizeof head, 0) != sizeof head)
        return "it cannot be read, or no server has begun";
    if (head.magic != SEGMENT_MAGIC)
        return "the file holds something else";
    if (head.layout != BOARD_LAYOUT)
        return "it is that of another release: use the stampctl of the server that runs";
    if (head.size != size || (uint64_t)status.st_size < size)
        return "its size is not that of the settings: the server was started with others";
    return NULL;
}

bool segment_view_open(struct segment **segment_r, const char *path, const struct board_sizes *sizes,
                       char *problem, size_t problem_size)
{
    size_t size = board_size(sizes);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *trouble = fd < 0 ? strerror(errno) : segment_view_examine(fd, size);
    const void *memory = trouble ? NULL : mapping_view(fd, size);
    if (!trouble && !memory)
        trouble = strerror(errno);
    if (fd >= 0)
        close(fd);
    if (trouble) {
        snprintf(problem, problem_size, "segment %s: %s", path, trouble);
        return false;
    }
    struct segment *segment = memory_zeroed(1, sizeof *segment, "looking at the segment");
    segment->index = SEGMENT_NO_INDEX;
    segment->mapping = (struct mapping){.memory = (void *)(uintptr_t)memory, .size = size, .fd = -1};
    board_init(segment, sizes);
    *segment_r = segment;
    return true;
}

void segment_view_close(struct segment *segment)
{
    shared_cache_destroy(segment->shared_cache);
    mapping_view_end(segment->mapping.memory, segment->mapping.size);
    free(segment);
}
