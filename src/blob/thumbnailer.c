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
#include <unistd.h>

#include "base/builder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/process/subprocess.h"
#include "edge/picture.h"

enum {
    OUTPUT_MOST = 32 << 20, /* of all thumbnails */
    PIECE_BYTES = 1 << 16,
    WORDS_MOST = 9 + THUMBNAILER_BOXES_MOST + 1,
};

struct thumbnailer {
    struct arena *arena;
    size_t box_count;
    struct subprocess child;
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

struct thumbnailer *thumbnailer_start(struct arena *arena, const struct thumbnailer_job *job)
{
    static const char *const none[] = {NULL};
    const char *words[WORDS_MOST];
    struct thumbnailer *thumbnailer = ARENA_NEW(arena, struct thumbnailer);
    write_words(arena, job, words);
    const struct subprocess_work work = {
        .words = words, .environment = none, .has_in = true, .has_out = true, .has_no_errors = true};
    *thumbnailer = (struct thumbnailer){
        .arena = arena, .box_count = job->box_count, .end_ms = clock_monotonic_ms() + job->wall_ms};
    if (!subprocess_start(&work, &thumbnailer->child)) {
        log_error("thumbnails: %s cannot be started: %m", words[0]);
        return NULL;
    }
    (void)fcntl(thumbnailer->child.in, F_SETFL, O_NONBLOCK);
    (void)fcntl(thumbnailer->child.out, F_SETFL, O_NONBLOCK);
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
    while (piece.size && thumbnailer->child.in >= 0) {
        ssize_t put = write(thumbnailer->child.in, piece.data, piece.size);
        if (put > 0)
            piece = (struct bytes){piece.data + put, piece.size - (size_t)put};
        else if (put < 0 && errno == EAGAIN ? !thumbnailer_await(thumbnailer, thumbnailer->child.in, POLLOUT)
                                            : errno != EINTR)
            subprocess_close(
                &thumbnailer->child.in); /* it has ended, or is late: thumbnailer_finish finds out which */
    }
    return thumbnailer->child.in >= 0;
}

/* All that the program writes; false: it is late, or writes too much. */
static bool read_output(struct thumbnailer *thumbnailer, struct builder *output)
{
    char piece[PIECE_BYTES];
    while (output->size <= OUTPUT_MOST) {
        ssize_t got = read(thumbnailer->child.out, piece, sizeof piece);
        if (got == 0)
            return true;
        if (got > 0)
            builder_add(output, piece, (size_t)got);
        else if (errno == EAGAIN ? !thumbnailer_await(thumbnailer, thumbnailer->child.out, POLLIN)
                                 : errno != EINTR)
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
    if (is_to_die)
        kill(thumbnailer->child.pid, SIGKILL);
    return subprocess_end(&thumbnailer->child);
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
    const int signal = status - SUBPROCESS_SIGNAL;
    if (signal <= 0)
        return judge_exit(status, reason_r);
    if (signal == SIGKILL || stop_ends(signal)) {
        *reason_r = "the decoder was killed";
        return THUMBNAILER_KILLED;
    }
    *reason_r = signal == SIGXCPU ? "too much computation" : "the decoder crashed";
    return THUMBNAILER_REFUSED;
}

enum thumbnailer_end thumbnailer_finish(struct thumbnailer *thumbnailer,
                                        struct bytes images_r[THUMBNAILER_BOXES_MOST], const char **reason_r)
{
    struct builder output = {0};
    *reason_r = "";
    subprocess_close(&thumbnailer->child.in);
    bool is_whole = !thumbnailer->is_late && read_output(thumbnailer, &output);
    int status = end_program(thumbnailer, !is_whole);
    enum thumbnailer_end end = THUMBNAILER_MADE;
    if (thumbnailer->is_late || status != PICTURE_DONE) {
        end = thumbnailer_judge(status, thumbnailer->is_late, reason_r);
    } else if (!is_whole || !part(thumbnailer, builder_bytes(&output), images_r)) {
        *reason_r = "the decoder crashed"; /* what it writes is not of this program any more */
        end = THUMBNAILER_REFUSED;
    }
    builder_free(&output);
    return end;
}
