/* agenda: a table of all tasks by name, a heap by start for those not yet due, and for each queue and
 * namespace a heap by priority for those due. */
#include "queue/agenda.h"

#include <stdlib.h>

#include "base/coding/hash.h"
#include "base/log.h"
#include "base/memory.h"

enum { NAMESPACES = 256, BUCKETS_LEAST = 1024, OVERLOOKED_MS = 5000 };

struct agenda_queue {
    struct heap due[NAMESPACES];
    size_t due_count;
    int concurrency, running;
    int running_of[NAMESPACES];
    int turn; /* the last namespace served */
};

struct agenda {
    struct agenda_task **buckets;
    size_t bucket_count, known, waiting, most;
    struct heap later;
    struct agenda_queue queues[AGENDA_QUEUES];
    bool (*is_quick)(void *context, const struct agenda_task *task);
    void *context;
    bool has_had_tasks[NAMESPACES];
    int namespaces_with_tasks; /* their number */
    uint32_t rounds[NAMESPACES];
    size_t waiting_of[NAMESPACES];
    uint64_t sequence;
    struct agenda_task **running; /* tasks that occupy a slot */
    int running_count;
};

static bool is_earlier(const struct heap_link *a, const struct heap_link *b)
{
    const struct agenda_task *left = (const struct agenda_task *)a, *right = (const struct agenda_task *)b;
    return left->start_ms < right->start_ms;
}

static bool goes_first(const struct heap_link *a, const struct heap_link *b)
{
    const struct agenda_task *left = (const struct agenda_task *)a, *right = (const struct agenda_task *)b;
    if (left->priority != right->priority)
        return left->priority < right->priority;
    return left->start_ms != right->start_ms ? left->start_ms < right->start_ms
                                             : left->sequence < right->sequence;
}

static void *agenda_allocate(size_t count, size_t size)
{
    void *memory = memory_zeroed(count, size, "agenda");
    return memory;
}

struct agenda *agenda_create(const int concurrency[AGENDA_QUEUES], size_t most)
{
    struct agenda *agenda = agenda_allocate(1, sizeof *agenda);
    int total = 0;
    for (int i = 0; i < AGENDA_QUEUES; i++) {
        agenda->queues[i].concurrency = concurrency[i];
        agenda->queues[i].turn = NAMESPACES - 1; /* so the first one is next */
        for (int ns = 0; ns < NAMESPACES; ns++)
            agenda->queues[i].due[ns].is_before = goes_first;
        total += concurrency[i];
    }
    assert(concurrency[0] > 0);
    agenda->later.is_before = is_earlier;
    agenda->most = most;
    agenda->bucket_count = BUCKETS_LEAST;
    agenda->buckets = agenda_allocate(agenda->bucket_count, sizeof *agenda->buckets);
    agenda->running = agenda_allocate((size_t)total, sizeof *agenda->running);
    return agenda;
}

void agenda_judge(struct agenda *agenda, bool (*is_quick)(void *context, const struct agenda_task *task),
                  void *context)
{
    agenda->is_quick = is_quick;
    agenda->context = context;
}

/* --- the table --- */

static size_t agenda_hash_of(int ns, const char *id, size_t size)
{
    uint64_t hash = hash_more(HASH_START + (uint64_t)ns, (struct bytes){id, size});
    return hash ^ hash >> 32;
}

static struct agenda_task **agenda_bucket_of(const struct agenda *agenda, int ns, const char *id, size_t size)
{
    return &agenda->buckets[agenda_hash_of(ns, id, size) & (agenda->bucket_count - 1)];
}

static struct agenda_task *agenda_find(const struct agenda *agenda, int ns, struct bytes id)
{
    struct agenda_task *task = *agenda_bucket_of(agenda, ns, id.data, id.size);
    while (task && (task->ns != ns || !bytes_equal(bytes_of(task->id), id)))
        task = task->next;
    return task;
}

static void insert(struct agenda *agenda, struct agenda_task *task)
{
    struct agenda_task **bucket = agenda_bucket_of(agenda, task->ns, task->id, strlen(task->id));
    task->next = *bucket;
    *bucket = task;
}

static void widen(struct agenda *agenda)
{
    struct agenda_task **former = agenda->buckets;
    size_t count = agenda->bucket_count;
    agenda->bucket_count *= 2;
    agenda->buckets = agenda_allocate(agenda->bucket_count, sizeof *agenda->buckets);
    for (size_t i = 0; i < count; i++)
        for (struct agenda_task *task = former[i], *next; task; task = next) {
            next = task->next;
            insert(agenda, task);
        }
    free(former);
}

/* --- waiting --- */

static struct agenda_queue *queue_of(struct agenda *agenda, const struct agenda_task *task)
{
    return &agenda->queues[task->queue];
}

static void start_waiting(struct agenda *agenda, struct agenda_task *task)
{
    task->is_due = false;
    heap_add(&agenda->later, &task->link);
    agenda->waiting++;
    agenda->waiting_of[task->ns]++;
}

static void stop_waiting(struct agenda *agenda, struct agenda_task *task)
{
    heap_remove(task->is_due ? &queue_of(agenda, task)->due[task->ns] : &agenda->later, &task->link);
    queue_of(agenda, task)->due_count -= task->is_due;
    agenda->waiting--;
    agenda->waiting_of[task->ns]--;
}

static void agenda_forget(struct agenda *agenda, struct agenda_task *task)
{
    if (task->link.place)
        stop_waiting(agenda, task);
    struct agenda_task **at = agenda_bucket_of(agenda, task->ns, task->id, strlen(task->id));
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    agenda->known--;
    free(task->operation);
    free(task->domain);
    free(task);
}

static char *agenda_keep(struct bytes text)
{
    char *copy = strndup(text.data ? text.data : "", text.size);
    if (!copy)
        log_fatal("out of memory agenda");
    return copy;
}

static void learn_text(char **field, struct bytes text)
{
    if (!text.size || bytes_equal(bytes_of(*field), text))
        return;
    free(*field);
    *field = agenda_keep(text);
}

/* Tasks of a queue without slots of its own go to the one before it. */
static int choose_queue(const struct agenda *agenda, int queue)
{
    queue = queue < 0 ? 0 : queue >= AGENDA_QUEUES ? AGENDA_QUEUES - 1 : queue;
    while (!agenda->queues[queue].concurrency)
        queue--;
    return queue;
}

static void learn(struct agenda *agenda, struct agenda_task *task, const struct agenda_entry *entry)
{
    task->queue = choose_queue(agenda, entry->queue);
    task->priority = entry->priority;
    task->retry = entry->retry;
    task->batch = entry->batch;
    task->start_ms = entry->start_ms;
    task->sequence = ++agenda->sequence;
    task->round = agenda->rounds[task->ns];
    learn_text(&task->operation, entry->operation);
    learn_text(&task->domain, entry->domain);
}

bool agenda_put(struct agenda *agenda, const struct agenda_entry *entry)
{
    assert(entry->ns >= 0 && entry->ns < NAMESPACES && entry->id.size <= AGENDA_ID_MAX);
    struct agenda_task *task = agenda_find(agenda, entry->ns, entry->id);
    if (task && task->is_running) {
        task->is_received_again = true;
        task->again_ms = entry->start_ms;
        task->again_retry = entry->retry;
        return true;
    }
    if (task) {
        stop_waiting(agenda, task);
    } else {
        if (agenda->waiting >= agenda->most && agenda->waiting_of[entry->ns] >= AGENDA_RESERVE)
            return false;
        task = agenda_allocate(1, sizeof *task);
        memcpy(task->id, entry->id.data, entry->id.size);
        task->ns = entry->ns;
        task->operation = agenda_keep(NO_BYTES);
        task->domain = agenda_keep(NO_BYTES);
        if (++agenda->known > agenda->bucket_count)
            widen(agenda);
        insert(agenda, task);
    }
    learn(agenda, task, entry);
    start_waiting(agenda, task);
    if (!agenda->has_had_tasks[task->ns]) {
        agenda->has_had_tasks[task->ns] = true;
        agenda->namespaces_with_tasks++;
    }
    return true;
}

/* --- running --- */

void agenda_pass(struct agenda *agenda, int64_t now_ms)
{
    for (struct heap_link *first; (first = heap_first(&agenda->later)) != NULL;) {
        struct agenda_task *task = (struct agenda_task *)first;
        if (task->start_ms > now_ms)
            return;
        heap_remove(&agenda->later, first);
        task->is_due = true;
        heap_add(&queue_of(agenda, task)->due[task->ns], first);
        queue_of(agenda, task)->due_count++;
    }
}

/* The running task of a domain; NULL: none runs, or `domain` is empty. */
static struct agenda_task *find_running(const struct agenda *agenda, int ns, struct bytes domain)
{
    for (int i = 0; domain.size && i < agenda->running_count; i++)
        if (agenda->running[i]->ns == ns && bytes_equal(bytes_of(agenda->running[i]->domain), domain))
            return agenda->running[i];
    return NULL;
}

void agenda_doubt(struct agenda *agenda, int ns)
{
    for (int i = 0; i < agenda->running_count; i++)
        agenda->running[i]->has_followers |= agenda->running[i]->ns == ns;
}

bool agenda_is_overlooked(const struct agenda *agenda, const struct agenda_entry *entry, int64_t now_ms)
{
    const struct agenda_queue *queue = &agenda->queues[choose_queue(agenda, entry->queue)];
    return entry->start_ms <= now_ms - OVERLOOKED_MS && queue->running < queue->concurrency &&
           !agenda_find(agenda, entry->ns, entry->id) && !find_running(agenda, entry->ns, entry->domain);
}

static void agenda_start(struct agenda *agenda, struct agenda_task *task)
{
    stop_waiting(agenda, task);
    task->is_running = true;
    task->is_received_again = false;
    task->has_followers = false;
}

/* Is the last free slot withheld for other namespaces? */
static bool is_slot_kept(const struct agenda *agenda, const struct agenda_queue *queue,
                         const struct agenda_task *task)
{
    return queue->concurrency > 1 && agenda->namespaces_with_tasks > 1 &&
           queue->running_of[task->ns] == queue->concurrency - 1 &&
           !(agenda->is_quick && agenda->is_quick(agenda->context, task));
}

/* The first task of the namespace that occupies the fewest slots, however many tasks others have; ties go
 * round robin.  NULL: the free slot is withheld for others. */
static struct agenda_task *first_of_next_ns(const struct agenda *agenda, struct agenda_queue *queue)
{
    struct agenda_task *next = NULL;
    for (int i = 1; i <= NAMESPACES; i++) {
        int ns = (queue->turn + i) % NAMESPACES;
        struct agenda_task *first = (struct agenda_task *)heap_first(&queue->due[ns]);
        if (first && (!next || queue->running_of[ns] < queue->running_of[next->ns]) &&
            !is_slot_kept(agenda, queue, first))
            next = first;
    }
    if (next)
        queue->turn = next->ns;
    return next;
}

struct agenda_task *agenda_take(struct agenda *agenda, int64_t now_ms)
{
    agenda_pass(agenda, now_ms);
    for (int i = 0; i < AGENDA_QUEUES; i++) {
        struct agenda_queue *queue = &agenda->queues[i];
        while (queue->running < queue->concurrency && queue->due_count) {
            struct agenda_task *task = first_of_next_ns(agenda, queue);
            if (!task)
                break;
            struct agenda_task *before = find_running(agenda, task->ns, bytes_of(task->domain));
            if (before) {
                before->has_followers = true;
                agenda_forget(agenda, task);
                continue;
            }
            queue->running++;
            queue->running_of[task->ns]++;
            agenda->running[agenda->running_count++] = task;
            agenda_start(agenda, task);
            return task;
        }
    }
    return NULL;
}

size_t agenda_share(const struct agenda *agenda, const struct agenda_task *task)
{
    const struct agenda_queue *from = &agenda->queues[task->queue];
    return 1 + from->due[task->ns].count / (size_t)from->concurrency;
}

static bool may_share(const struct agenda_task *task, const struct agenda_task *first)
{
    if (task->ns != first->ns || *task->domain || *first->domain || task->retry || first->retry)
        return false;
    if (first->batch > 1)
        return task->batch > 1 && *task->operation && strcmp(task->operation, first->operation) == 0;
    return task->batch <= 1;
}

struct agenda_task *agenda_see_along(struct agenda *agenda, const struct agenda_task *first, int64_t now_ms)
{
    agenda_pass(agenda, now_ms);
    struct agenda_task *task = (struct agenda_task *)heap_first(&agenda->queues[first->queue].due[first->ns]);
    return task && may_share(task, first) ? task : NULL;
}

void agenda_take_along(struct agenda *agenda, struct agenda_task *task)
{
    agenda_start(agenda, task);
}

static void leave_slot(struct agenda *agenda, const struct agenda_task *task)
{
    int i = 0;
    while (agenda->running[i] != task)
        i++;
    agenda->running[i] = agenda->running[--agenda->running_count];
    agenda->queues[task->queue].running--;
    agenda->queues[task->queue].running_of[task->ns]--;
}

void agenda_end(struct agenda *agenda, struct agenda_task *task, bool has_slot, bool is_over)
{
    assert(task->is_running);
    if (has_slot)
        leave_slot(agenda, task);
    task->is_running = false;
    if (!task->is_received_again || (is_over && task->again_ms <= task->start_ms)) {
        agenda_forget(agenda, task);
        return;
    }
    task->start_ms = task->again_ms;
    task->retry = task->again_retry;
    task->round = agenda->rounds[task->ns];
    start_waiting(agenda, task);
}

/* --- scans --- */

void agenda_begin_scan(struct agenda *agenda, int ns)
{
    agenda->rounds[ns]++;
}

/* Drops the waiting tasks of a namespace that were due by then and not received in this round. */
static void sweep(struct agenda *agenda, int ns, int64_t until_ms)
{
    for (size_t i = 0; i < agenda->bucket_count; i++)
        for (struct agenda_task *task = agenda->buckets[i], *next; task; task = next) {
            next = task->next;
            if (task->ns == ns && !task->is_running && task->round != agenda->rounds[ns] &&
                task->start_ms <= until_ms)
                agenda_forget(agenda, task);
        }
}

void agenda_end_scan(struct agenda *agenda, int ns, int64_t until_ms)
{
    sweep(agenda, ns, until_ms);
}

void agenda_drop_ns(struct agenda *agenda, int ns)
{
    agenda->rounds[ns]++;
    sweep(agenda, ns, INT64_MAX);
}

/* --- queries --- */

int64_t agenda_next_ms(const struct agenda *agenda)
{
    const struct agenda_task *first = (const struct agenda_task *)heap_first(&agenda->later);
    return first ? first->start_ms : INT64_MAX;
}

struct agenda_counts agenda_count(const struct agenda *agenda)
{
    return (struct agenda_counts){
        .later = agenda->later.count,
        .due = agenda->waiting - agenda->later.count,
        .running = agenda->known - agenda->waiting,
    };
}

int agenda_running(const struct agenda *agenda)
{
    return agenda->running_count;
}

int agenda_slots(const struct agenda *agenda, int queue, int *taken_r)
{
    *taken_r = agenda->queues[queue].running;
    return agenda->queues[queue].concurrency;
}

size_t agenda_waiting(const struct agenda *agenda, int ns)
{
    return agenda->waiting_of[ns];
}

void agenda_each(const struct agenda *agenda, void (*visit)(void *context, const struct agenda_task *task),
                 void *context)
{
    for (size_t i = 0; i < agenda->bucket_count; i++)
        for (const struct agenda_task *task = agenda->buckets[i]; task; task = task->next)
            visit(context, task);
}

void agenda_destroy(struct agenda *agenda)
{
    for (size_t i = 0; i < agenda->bucket_count; i++)
        for (struct agenda_task *task = agenda->buckets[i], *next; task; task = next) {
            next = task->next;
            free(task->operation);
            free(task->domain);
            free(task);
        }
    for (int i = 0; i < AGENDA_QUEUES; i++)
        for (int ns = 0; ns < NAMESPACES; ns++)
            heap_free(&agenda->queues[i].due[ns]);
    heap_free(&agenda->later);
    free(agenda->buckets);
    free(agenda->running);
    free(agenda);
}
