/* worker_load: external workers that take no-op tasks and end them one by one, each over a kept HTTPS
 * connection of its own.
 *
 *     worker_load URL CA KEY QUEUE WORKERS [next]
 *
 * URL is that of the namespace, KEY a key of a worker of the queue.  With `next`, each `done` takes the next
 * task; else a request of its own does.  Each worker is a process; they begin together, when all are
 * connected, and end when there is nothing to take.  Prints one line of JSON: tasks, tasks in a second, the
 * median and the 99th percentile of `take` and of `done` in microseconds, and the processor time of all
 * workers for a task. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/builder.h"
#include "edge/http.h"
#include "edge/json/json.h"

enum { WORKERS_MOST = 64, BUCKETS = 100000 /* of 10 microseconds */, TIMEOUT_MS = 60000 };
enum deed { TAKE, DONE, DEEDS };

/* What all processes share. */
struct tally {
    _Atomic int64_t end_us; /* of the last task */
    _Atomic uint64_t tasks, counts[DEEDS][BUCKETS];
};

struct worker {
    struct http *http;
    struct arena *arena;
    const char *urls[DEEDS], *take, *next; /* next: the member of `done`, or nothing */
    const char *headers[2];
    struct builder body;
    int64_t ended_us; /* of its last task */
};

static struct tally *tally;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void fail(const char *what)
{
    fprintf(stderr, "worker_load: %s\n", what);
    _exit(1);
}

/* The member `out` of an answer. */
static const struct json *ask(struct worker *worker, enum deed deed, struct bytes body)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 32};
    const struct http_request request = {.method = "POST",
                                         .url = worker->urls[deed],
                                         .content_type = "application/json",
                                         .body = body,
                                         .headers = worker->headers,
                                         .timeout_ms = TIMEOUT_MS};
    struct http_result result;
    struct json *root;
    struct json_problem problem;
    int64_t before_us = now_us();
    http_run(worker->http, &request, &result);
    int64_t after_us = now_us(), bucket = (after_us - before_us) / 10;
    worker->ended_us = deed == DONE ? after_us : worker->ended_us;
    if (result.status != 200)
        fail(result.status ? arena_copy(worker->arena, result.body.data, result.body.size) : result.problem);
    atomic_fetch_add(&tally->counts[deed][bucket < BUCKETS ? bucket : BUCKETS - 1], 1);
    if (json_read(worker->arena, result.body, &limits, &root, &problem))
        fail("an answer is not JSON");
    return json_member(root, "out");
}

static const struct json *take(struct worker *worker)
{
    const struct json *tasks = json_member(ask(worker, TAKE, bytes_of(worker->take)), "tasks");
    return tasks ? tasks->first : NULL;
}

/* The next task; NULL: there is none. */
static const struct json *end(struct worker *worker, const struct json *task)
{
    static const char *const names[] = {"id", "starttime", "retry"};
    worker->body.size = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json *member = json_member(task, names[i]);
        if (!member)
            fail("a task without its claim");
        builder_printf(&worker->body, "%s\"%s\":%.*s", i ? "," : "{\"param\":{", names[i],
                       (int)member->text.size, member->text.data);
    }
    builder_printf(&worker->body, "%s}}", worker->next);
    arena_reset(worker->arena);
    const struct json *out = ask(worker, DONE, (struct bytes){worker->body.data, worker->body.size}),
                      *tasks = json_member(out, "tasks");
    return tasks && tasks->first ? tasks->first : take(worker);
}

/* A byte in `ready` when it is connected; then it waits for the end of `start`. */
static void work(char **words, int ready, int start)
{
    const struct http_options options = {
        .parallel = 1, .ca_file = words[2], .connect_timeout_ms = TIMEOUT_MS, .reach = HTTP_EVERYWHERE};
    struct worker worker = {.http = http_open(&options), .arena = arena_create("answer")};
    struct arena *kept = arena_create("words");
    struct http_result result;
    char byte = 0;
    worker.urls[TAKE] = arena_printf(kept, "%s/op/take", words[1]);
    worker.urls[DONE] = arena_printf(kept, "%s/op/done", words[1]);
    worker.headers[0] = arena_printf(kept, "Authorization: Bearer %s", words[3]);
    worker.take = arena_printf(kept, "{\"param\":{\"qn\":%s}}", words[4]);
    worker.next = words[6] ? arena_printf(kept, ",\"take\":{\"qn\":%s}", words[4]) : "";
    http_run(worker.http, &(struct http_request){.method = "GET", .url = words[1], .timeout_ms = TIMEOUT_MS},
             &result);
    if (!result.status)
        fail(result.problem);
    if (write(ready, &byte, 1) != 1 || read(start, &byte, 1) != 0)
        fail("cannot begin with the others");
    uint64_t tasks = 0;
    for (const struct json *task = take(&worker); task; tasks++) {
        task = end(&worker, task);
        atomic_store(&tally->end_us, worker.ended_us);
    }
    atomic_fetch_add(&tally->tasks, tasks);
    _exit(0);
}

/* When all workers began. */
static int64_t start_workers(char **words, int workers)
{
    int ready[2], start[2];
    char byte;
    if (pipe(ready) || pipe(start))
        fail("no pipe");
    for (int i = 0; i < workers; i++)
        if (!fork()) {
            close(ready[0]);
            close(start[1]);
            work(words, ready[1], start[0]);
        }
    close(ready[1]);
    for (int i = 0; i < workers; i++)
        if (read(ready[0], &byte, 1) != 1)
            fail("a worker cannot begin");
    int64_t begin_us = now_us();
    close(start[1]);
    return begin_us;
}

static int64_t percentile(enum deed deed, uint64_t hundredths)
{
    uint64_t all = 0, seen = 0;
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        all += tally->counts[deed][bucket];
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        if ((seen += tally->counts[deed][bucket]) * 100 >= all * hundredths)
            return bucket * 10;
    return 0;
}

int main(int argc, char **argv)
{
    bool is_known = argc == 6 || (argc == 7 && strcmp(argv[6], "next") == 0);
    int workers = is_known ? (int)strtol(argv[5], NULL, 10) : 0, wrong = 0, status;
    if (workers < 1 || workers > WORKERS_MOST) {
        fprintf(stderr, "usage: worker_load URL CA KEY QUEUE WORKERS [next]\n");
        return 2;
    }
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        fail("no memory");
    int64_t begin_us = start_workers(argv, workers);
    for (int i = 0; i < workers; i++)
        wrong |= wait(&status) < 0 || status;
    uint64_t tasks = atomic_load(&tally->tasks);
    double seconds = (double)(atomic_load(&tally->end_us) - begin_us) / 1e6;
    if (wrong || !tasks)
        fail("not all workers have come to the end");
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    double processor_us = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                          (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    printf("{\"tasks\":%llu,\"per_second\":%.1f,\"take_us\":[%lld,%lld],\"done_us\":[%lld,%lld],"
           "\"processor_us\":%.0f}\n",
           (unsigned long long)tasks, (double)tasks / seconds, (long long)percentile(TAKE, 50),
           (long long)percentile(TAKE, 99), (long long)percentile(DONE, 50), (long long)percentile(DONE, 99),
           processor_us / (double)tasks);
    return 0;
}
