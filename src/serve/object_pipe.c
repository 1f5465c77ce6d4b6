/* object_pipe: a child that blocks, for a parent that does not. */
#include "serve/object_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/process/reaper.h"
#include "blob/object_stores.h"

enum {
    PIECE_BYTES = 1 << 20, /* of a request: it is in memory */
    REQUEST_S = 30,        /* an answer of a store, beside the time of its bytes */
    PIPE_FD = 3,           /* of the child */
};

struct object_pipe {
    pid_t pid;
    int fd;
    struct watch *watch;
    size_t used;
    char bytes[OBJECT_PIPE_MOST];
};

/* --- the child --- */

static bool write_piece(void *context, struct bytes piece)
{
    bool *is_taken = context;
    *is_taken = bytes_write(PIPE_FD, piece);
    return *is_taken;
}

static bool object_pipe_fetch(const struct settings *settings, const struct object_part *part)
{
    const struct object_store_place *place;
    char problem[400];
    bool is_taken = true;
    struct object_stores *stores = object_stores_open(settings->object_stores_file, problem, sizeof problem);
    if (!stores || !object_stores_find(stores, part->store, &place, problem, sizeof problem)) {
        log_error("attachments: a file is in an object store: %s", problem);
        return false;
    }
    struct object_store_place own = *place;
    own.timeout_s = REQUEST_S;
    struct object_store *store = object_store_open(&own);
    bool is_read = object_store_read_part(store, part->object, part->from, part->size, PIECE_BYTES,
                                          write_piece, &is_taken);
    if (!is_read)
        log_error("attachments: cannot read an object store=%s object=%s: %s", part->store, part->object,
                  object_store_problem(store));
    return is_read && is_taken;
}

/* Connections of the parent would stay open here after it has closed them. */
static _Noreturn void object_pipe_run_child(const struct settings *settings, const struct object_part *part,
                                            pid_t parent, int end)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "stampd-fetch"); /* for administrators */
    if (getppid() != parent)
        _exit(1);
    log_close();
    if (dup2(end, PIPE_FD) < 0 || close_range(PIPE_FD + 1, ~0U, 0) != 0)
        _exit(1);
    _exit(object_pipe_fetch(settings, part) ? 0 : 1);
}

/* --- the parent --- */

struct object_pipe *object_pipe_open(struct events *events, const struct settings *settings,
                                     const struct object_part *part, void (*ready)(void *context),
                                     void *context)
{
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) {
        log_often(LOG_LEVEL_ERROR, "pipe", "cannot open a pipe: %m");
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0)
        object_pipe_run_child(settings, part, parent, ends[1]);
    close(ends[1]);
    if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        log_often(LOG_LEVEL_ERROR, "fetch", "cannot start a process for an object: %m");
        close(ends[0]);
        return NULL;
    }
    struct object_pipe *pipe = memory_zeroed(1, sizeof *pipe, "object pipe");
    pipe->pid = pid;
    pipe->fd = ends[0];
    pipe->watch = events_watch_create(events, ready, context);
    return pipe;
}

enum object_pipe_state object_pipe_read(struct object_pipe *pipe, size_t size, struct bytes *bytes_r)
{
    assert(size <= sizeof pipe->bytes && pipe->used <= size);
    *bytes_r = BYTES("");
    while (pipe->used < size) {
        ssize_t got = read(pipe->fd, pipe->bytes + pipe->used, size - pipe->used);
        if (got > 0) {
            pipe->used += (size_t)got;
        } else if (got < 0 && errno == EAGAIN) {
            events_watch_set(pipe->watch, pipe->fd, false);
            return OBJECT_PIPE_LATER;
        } else if (got == 0 || errno != EINTR) {
            events_watch_set(pipe->watch, -1, false);
            return OBJECT_PIPE_ENDED;
        }
    }
    events_watch_set(pipe->watch, -1, false); /* more is read when it is wanted */
    *bytes_r = (struct bytes){pipe->bytes, size};
    pipe->used = 0;
    return OBJECT_PIPE_READ;
}

void object_pipe_close(struct object_pipe *pipe)
{
    if (!pipe)
        return;
    events_watch_destroy(pipe->watch);
    close(pipe->fd);
    reaper_kill(pipe->pid);
    free(pipe);
}
