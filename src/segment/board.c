/* board: the tenants in sequence, each at the start of a cache line. */
#include "segment/board.h"

#include "segment/counts/activity.h"
#include "segment/counts/backlog.h"
#include "segment/beats.h"
#include "segment/feed.h"
#include "segment/counts/hashers.h"
#include "segment/counts/limiter.h"
#include "segment/lineage.h"
#include "segment/counts/losses.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/public_answers.h"
#include "segment/counts/purge_counts.h"
#include "segment/counts/long_requests.h"
#include "segment/counts/refusals.h"
#include "segment/shared_cache.h"
#include "segment/slots.h"
#include "segment/counts/request_counts.h"
#include "segment/counts/stored.h"
#include "segment/counts/shares.h"
#include "segment/counts/task_counts.h"
#include "segment/counts/waits.h"
#include "segment/warnings.h"
#include "segment/writer_queue.h"

static const struct tenant {
    size_t (*size)(const struct board_sizes *sizes);
    void (*init)(struct segment *segment, void *memory, const struct board_sizes *sizes);
    void (*recover)(struct segment *segment, int index); /* NULL: a dead process leaves nothing */
} TENANTS[] = {
    {slots_size, slots_init, NULL}, /* marks: slots_sweep */
    {public_answers_size, public_answers_init, public_answers_recover},
    {namespaces_size, namespaces_init, NULL},
    {processes_size, processes_init, NULL}, /* a commit in flight: serve/instance.h */
    {lineage_size, lineage_init, NULL},
    {waits_size, waits_init, waits_recover},
    {beats_size, beats_init, NULL},
    {metrics_size, metrics_init, NULL},
    {backlog_size, backlog_init, NULL},
    {losses_size, losses_init, NULL},
    {feed_size, feed_init, NULL},
    {purge_counts_size, purge_counts_init, NULL},
    {task_counts_size, task_counts_init, NULL},
    {long_requests_size, long_requests_init, NULL},
    {hashers_size, hashers_init, NULL},
    {shares_size, shares_init, NULL},
    {warnings_size, warnings_init, NULL},
    {activity_size, activity_init, NULL},
    {refusals_size, refusals_init, NULL},
    {request_counts_size, request_counts_init, NULL},
    {limiter_size, limiter_init, NULL},
    {stored_size, stored_init, NULL},
    {writer_queue_size, writer_queue_init, writer_queue_recover},
    {shared_cache_size, shared_cache_init, shared_cache_recover_index},
};

enum { LINE = 64 };

static size_t whole_lines(size_t size)
{
    return (size + LINE - 1) / LINE * LINE;
}

size_t board_size(const struct board_sizes *sizes)
{
    size_t size = whole_lines(sizeof(struct mapping_head));
    for (size_t i = 0; i < sizeof TENANTS / sizeof *TENANTS; i++)
        size += whole_lines(TENANTS[i].size(sizes));
    return size;
}

void board_init(struct segment *segment, const struct board_sizes *sizes)
{
    char *memory = segment->mapping.memory;
    memory += whole_lines(sizeof(struct mapping_head));
    for (size_t i = 0; i < sizeof TENANTS / sizeof *TENANTS; i++) {
        TENANTS[i].init(segment, memory, sizes);
        memory += whole_lines(TENANTS[i].size(sizes));
    }
}

void board_recover(struct segment *segment, int index)
{
    for (size_t i = 0; i < sizeof TENANTS / sizeof *TENANTS; i++)
        if (TENANTS[i].recover)
            TENANTS[i].recover(segment, index);
}
