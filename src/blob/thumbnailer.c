/* thumbnailer: fork, two pipes that never block, and a deadline. */
#include "blob/thumbnailer.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/builder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "edge/picture.h"

enum {
    OUTPUT_MOST = 32 << 20, /* of all thumbnails */
    PIECE_BYTES = 1 << 16,
    WORDS_MOST = 9 + THUMBNAILER_BOXES_MOST + 1,
    NOT_RUN = 127,
};

struct thumbnailer {
    struct arena *arena;
    size_t box_count;
    pid_t pid;
    int in, out; /* -1: closed */
    int64_t end_ms;
    bool is_late;
};

/* --- start ----------------------------------------------------------------------------------------- */

bool thumbnailer_is_there(const char *program)
{
#ifdef HAVE_THUMBNAILS
    const bool is_built = true;
#else
    const bool is_built = false;
#endif
    return *program ? strcmp(program, "none") != 0 : is_built;
}

static const char *find_program(struct arena *arena, const char *program)
{
    char path[PATH_MAX];
    if (*program)
        return program;
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(path, '/');
    return arena_printf(arena, "%.*s/stamp-thumbnail", slash ? (int)(slash - path) : 0, path);
}

static void write_words(struct arena *arena, const struct thumbnailer_job *job, const char *words[WORDS_MOST])
{
    const struct {
        const char *name;
        int64_t value;
    } options[] = {{"--bytes", job->bytes_most},
                   {"--pixels", job->pixels_most},
                   {"--memory-mb", job->memory_mb},
                   {"--cpu-s", job->cpu_s}};
    size_t count = 0;
    words[count++] = find_program(arena, job->program);
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        words[count++] = options[i].name;
        words[count++] = arena_printf(arena, "%" PRId64, options[i].value);
    }
    for (size_t i = 0; i < job->box_count; i++)
        words[count++] =
            arena_printf(arena, "%" PRId64 "x%" PRId64, job->boxes[i].width, job->boxes[i].height);
    words[count] = NULL;
}

static NORETURN void thumbnailer_run_child(const char *const words[WORDS_MOST], int in, int out)
{
    static char *const none[] = {NULL};
    sigset_t all;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (null >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(null, STDERR_FILENO) >= 0)
        execve(words[0], (char **)(uintptr_t)words, none);
    _exit(NOT_RUN);
}

/* Both ends of both pipes above the standard streams, so that dup2 does not close one of them. */
static bool open_pipes(int in[2], int out[2])
{
    in[0] = in[1] = out[0] = out[1] = -1;
    return pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && in[0] > STDERR_FILENO &&
           out[0] > STDERR_FILENO && fcntl(in[1], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(out[0], F_SETFL, O_NONBLOCK) == 0;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

struct thumbnailer *thumbnailer_start(struct arena *arena, const struct thumbnailer_job *job)
{
    const char *words[WORDS_MOST];
    int in[2], out[2];
    struct thumbnailer *thumbnailer = ARENA_NEW(arena, struct thumbnailer);
    write_words(arena, job, words);
    bool is_open = open_pipes(in, out);
    pid_t pid = is_open ? fork() : -1;
    if (pid == 0)
        thumbnailer_run_child(words, in[0], out[1]);
    if (pid < 0)
        log_error("thumbnails: %s cannot be started: %m", words[0]);
    shut(&in[0]);
    shut(&out[1]);
    if (pid < 0) {
        shut(&in[1]);
        shut(&out[0]);
        return NULL;
    }
    *thumbnailer = (struct thumbnailer){.arena = arena,
                                        .box_count = job->box_count,
                                        .pid = pid,
                                        .in = in[1],
                                        .out = out[0],
                                        .end_ms = clock_monotonic_ms() + job->wall_ms};
    return thumbnailer;
}

/* --- bytes ----------------------------------------------------------------------------------------- */

/* False: not in time, or no more. */
static bool thumbnailer_await(struct thumbnailer *thumbnailer, int fd, short events)
{
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = events};
        int64_t left_ms = thumbnailer->end_ms - clock_monotonic_ms();
        int ready = left_ms > 0 ? poll(&wait, 1, (int)(left_ms < INT_MAX ? left_ms : INT_MAX)) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        thumbnailer->is_late = thumbnailer->is_late || ready == 0;
        return ready > 0;
    }
}

bool thumbnailer_feed(void *context, struct bytes piece)
{
    struct thumbnailer *thumbnailer = context;
    while (piece.size && thumbnailer->in >= 0) {
        ssize_t put = write(thumbnailer->in, piece.data, piece.size);
        if (put > 0)
            piece = (struct bytes){piece.data + put, piece.size - (size_t)put};
        else if (put < 0 && errno == EAGAIN ? !thumbnailer_await(thumbnailer, thumbnailer->in, POLLOUT)
                                            : errno != EINTR)
            shut(&thumbnailer->in); /* it has ended, or is late: thumbnailer_finish finds out which */
    }
    return thumbnailer->in >= 0;
}

/* All that the program writes; false: it is late, or writes too much. */
static bool read_output(struct thumbnailer *thumbnailer, struct builder *output)
{
    char piece[PIECE_BYTES];
    while (output->size <= OUTPUT_MOST) {
        ssize_t got = read(thumbnailer->out, piece, sizeof piece);
        if (got == 0)
            return true;
        if (got > 0)
            builder_add(output, piece, (size_t)got);
        else if (errno == EAGAIN ? !thumbnailer_await(thumbnailer, thumbnailer->out, POLLIN) : errno != EINTR)
            return false;
    }
    return false;
}

/* A line with the size of each, then its bytes. */
static bool part(struct thumbnailer *thumbnailer, struct bytes rest, struct bytes *images_r)
{
    for (size_t i = 0; i < thumbnailer->box_count; i++) {
        int64_t size;
        if (!bytes_to_i64(bytes_cut(&rest, '\n'), &size) || size < 1 || (size_t)size > rest.size)
            return false;
        images_r[i] = (struct bytes){arena_copy(thumbnailer->arena, rest.data, (size_t)size), (size_t)size};
        rest = (struct bytes){rest.data + size, rest.size - (size_t)size};
    }
    return rest.size == 0;
}

/* --- end ------------------------------------------------------------------------------------------- */

static int end_program(struct thumbnailer *thumbnailer, bool is_to_die)
{
    int status = 0;
    shut(&thumbnailer->in);
    shut(&thumbnailer->out);
    if (is_to_die)
        kill(thumbnailer->pid, SIGKILL);
    while (waitpid(thumbnailer->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void thumbnailer_abandon(struct thumbnailer *thumbnailer)
{
    (void)end_program(thumbnailer, true);
}

static enum thumbnailer_end judge_exit(int status, const char **reason_r)
{
    switch (status) {
    case PICTURE_UNSUPPORTED:
        *reason_r = "unsupported format";
        return THUMBNAILER_REFUSED;
    case PICTURE_DAMAGED:
        *reason_r = "damaged image";
        return THUMBNAILER_REFUSED;
    case PICTURE_PIXELS:
        *reason_r = "too many pixels";
        return THUMBNAILER_REFUSED;
    case PICTURE_BYTES:
        *reason_r = "too many bytes";
        return THUMBNAILER_REFUSED;
    default:
        log_error("thumbnails: stamp-thumbnail cannot be run (status %d)", status);
        return THUMBNAILER_FAILED;
    }
}

static enum thumbnailer_end thumbnailer_judge(int status, bool is_late, const char **reason_r)
{
    if (is_late) {
        *reason_r = "too much time";
        return THUMBNAILER_KILLED;
    }
    if (WIFEXITED(status))
        return judge_exit(WEXITSTATUS(status), reason_r);
    if (WTERMSIG(status) == SIGKILL || stop_ends(WTERMSIG(status))) {
        *reason_r = "the decoder was killed";
        return THUMBNAILER_KILLED;
    }
    *reason_r = WTERMSIG(status) == SIGXCPU ? "too much computation" : "the decoder crashed";
    return THUMBNAILER_REFUSED;
}

enum thumbnailer_end thumbnailer_finish(struct thumbnailer *thumbnailer,
                                        struct bytes images_r[THUMBNAILER_BOXES_MOST], const char **reason_r)
{
    struct builder output = {0};
    *reason_r = "";
    shut(&thumbnailer->in);
    bool is_whole = !thumbnailer->is_late && read_output(thumbnailer, &output);
    int status = end_program(thumbnailer, !is_whole);
    enum thumbnailer_end end = THUMBNAILER_MADE;
    if (thumbnailer->is_late || !WIFEXITED(status) || WEXITSTATUS(status) != PICTURE_DONE) {
        end = thumbnailer_judge(status, thumbnailer->is_late, reason_r);
    } else if (!is_whole || !part(thumbnailer, builder_bytes(&output), images_r)) {
        *reason_r = "the decoder crashed"; /* what it writes is not of this program any more */
        end = THUMBNAILER_REFUSED;
    }
    builder_free(&output);
    return end;
}
