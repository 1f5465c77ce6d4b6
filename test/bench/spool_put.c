/* spool_put: writers that put requests of 200 bytes into a spool, or append as much to one file with a bare
 * group commit.
 *
 *     spool_put spool|threads|bare FOLDER WRITERS SECONDS [TOGETHER]
 *     spool_put fill FOLDER 1 RECORDS
 *
 * Prints one line of JSON: requests in a second, the median and the 99th percentile of a request in
 * microseconds.  With TOGETHER each writer appends as many requests by one call, waits for all of them, and
 * begins again. bare is what the spool is compared with: the same bytes, a lock, and one fdatasync for all
 * that wrote before, without records.  Writers are processes, of threads threads of one.  fill puts so many
 * requests for tasks that do nothing, which need not be durable, and prints nothing. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spool/stampd_spool.h"

enum {
    PARAM_BYTES = 200,
    WRITERS_MOST = 64,
    TOGETHER_MOST = 1024,
    BUCKETS = 100000 /* of 10 microseconds */
};

struct board {
    _Atomic uint64_t written, durable;
    _Atomic uint64_t counts[BUCKETS];
};

static struct board *board;
static const char *thread_folder;
static int64_t thread_end_us;
static size_t together = 1;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static void append_bare(const char *folder, int *lock, int *file)
{
    static char bytes[PARAM_BYTES + 64];
    char path[4096];
    if (!*file) {
        snprintf(path, sizeof path, "%s/bare", folder);
        *file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        *lock = open(path, O_WRONLY | O_CLOEXEC);
    }
    if (*lock < 0 || write(*file, bytes, sizeof bytes) != sizeof bytes)
        fail("write");
    uint64_t mine = atomic_fetch_add(&board->written, 1) + 1;
    flock(*lock, LOCK_EX);
    if (atomic_load(&board->durable) < mine) {
        uint64_t target = atomic_load(&board->written);
        if (fdatasync(*file))
            fail("fdatasync");
        atomic_store(&board->durable, target);
    }
    flock(*lock, LOCK_UN);
}

static struct stampd_spool_request make_request(const char *operation)
{
    static _Thread_local char param[PARAM_BYTES + 1];
    struct stampd_spool_request request = STAMPD_SPOOL_REQUEST;
    memset(param, ' ', PARAM_BYTES);
    param[0] = '{';
    param[PARAM_BYTES - 1] = '}';
    request.ns = "lab";
    request.operation = operation;
    request.param = param;
    request.param_size = PARAM_BYTES;
    return request;
}

static int fill(const char *folder, long records)
{
    struct stampd_spool *spool;
    struct stampd_spool_request request = make_request("Nothing");
    if (stampd_spool_create(folder, NULL) || stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &spool))
        fail(folder);
    for (long i = 0; i < records; i++)
        if (stampd_spool_put(spool, &request, NULL))
            fail("put");
    stampd_spool_close(spool);
    return 0;
}

static void append_many(struct stampd_spool *spool, const struct stampd_spool_request *request)
{
    struct stampd_spool_request requests[TOGETHER_MOST];
    struct stampd_spool_range stored;
    for (size_t i = 0; i < together; i++)
        requests[i] = *request;
    if (stampd_spool_append(spool, requests, together, &stored) || stampd_spool_wait(spool, &stored))
        fail("append");
}

static void write_until(const char *folder, int is_bare, int64_t end_us)
{
    struct stampd_spool *spool = NULL;
    struct stampd_spool_request request = make_request("put");
    int lock = 0, file = 0;
    if (!is_bare && stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool))
        fail("open");
    for (int64_t before; (before = now_us()) < end_us;) {
        if (is_bare)
            append_bare(folder, &lock, &file);
        else if (together > 1)
            append_many(spool, &request);
        else if (stampd_spool_put(spool, &request, NULL))
            fail("put");
        int64_t bucket = (now_us() - before) / 10;
        atomic_fetch_add(&board->counts[bucket < BUCKETS ? bucket : BUCKETS - 1], 1);
    }
    stampd_spool_close(spool);
}

static void *write_in_thread(void *nothing)
{
    write_until(thread_folder, 0, thread_end_us);
    return nothing;
}

static int run_threads(const char *folder, int writers, int64_t end_us)
{
    pthread_t threads[WRITERS_MOST];
    int wrong = 0;
    thread_folder = folder;
    thread_end_us = end_us;
    for (int i = 0; i < writers; i++)
        if (pthread_create(&threads[i], NULL, write_in_thread, NULL))
            fail("pthread_create");
    for (int i = 0; i < writers; i++)
        wrong |= pthread_join(threads[i], NULL);
    return wrong;
}

static int run_processes(const char *folder, int is_bare, int writers, int64_t end_us)
{
    int status, wrong = 0;
    for (int i = 0; i < writers; i++)
        if (!fork()) {
            write_until(folder, is_bare, end_us);
            _exit(0);
        }
    for (int i = 0; i < writers; i++)
        wrong |= wait(&status) < 0 || status;
    return wrong;
}

static int64_t percentile(uint64_t total, int hundredths)
{
    uint64_t seen = 0;
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        if ((seen += board->counts[bucket]) * 100 >= total * (uint64_t)hundredths)
            return bucket * 10;
    return 0;
}

int main(int argc, char **argv)
{
    int writers = argc >= 5 ? (int)strtol(argv[3], NULL, 10) : 0;
    int64_t seconds = argc >= 5 ? strtol(argv[4], NULL, 10) : 0;
    together = argc == 6 ? (size_t)strtol(argv[5], NULL, 10) : 1;
    if (argc > 6 || writers < 1 || writers > WRITERS_MOST || seconds < 1 || together < 1 ||
        together > TOGETHER_MOST) {
        fprintf(stderr,
                "usage: spool_put spool|threads|bare|fill FOLDER WRITERS SECONDS|RECORDS [TOGETHER]\n");
        return 2;
    }
    if (strcmp(argv[1], "fill") == 0)
        return fill(argv[2], (long)seconds);
    int is_bare = strcmp(argv[1], "bare") == 0;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED || (!is_bare && stampd_spool_create(argv[2], NULL)))
        fail(argv[2]);
    int64_t end_us = now_us() + seconds * 1000000;
    int wrong = strcmp(argv[1], "threads") == 0 ? run_threads(argv[2], writers, end_us)
                                                : run_processes(argv[2], is_bare, writers, end_us);
    uint64_t total = 0;
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        total += board->counts[bucket];
    printf("{\"per_second\":%llu,\"median_us\":%lld,\"p99_us\":%lld}\n",
           (unsigned long long)total * together / (uint64_t)seconds, (long long)percentile(total, 50),
           (long long)percentile(total, 99));
    return wrong;
}
