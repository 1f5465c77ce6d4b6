/* stamp-thumbnail: makes thumbnails of one image that it reads, confined (stamp-thumbnail(8)). */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "edge/confinement.h"
#include "edge/picture.h"

enum { BOXES_MOST = 8, SIDE_MOST = 16384, PIECE_BYTES = 1 << 16, FILES = 16, MIB = 1 << 20 };

struct job {
    int64_t bytes, pixels, memory_mb, cpu_s;
    struct picture_box boxes[BOXES_MOST];
    size_t box_count;
};

static void stamp_thumbnail_print_help(void)
{
    puts("Usage: stamp-thumbnail [options] WIDTHxHEIGHT...\n"
         "Reads an image from its standard input, and writes for each box a thumbnail in WebP that fits into "
         "it\n"
         "to its standard output, a pipe: a line with its size in bytes, then the bytes.  stampd runs it.\n"
         "\n"
         "      --bytes N       Refuse an image of more bytes (default: 64 MiB).\n"
         "      --pixels N      Refuse an image of more pixels (default: 100,000,000).\n"
         "      --memory-mb N   Use at most so much address space (default: 1024).\n"
         "      --cpu-s N       Compute for at most so many seconds (default: 20).\n"
         "      --version       Show the version and exit.\n"
         "  -h, --help          Show this and exit." BUG_LINE);
}

static bool stamp_thumbnail_read_number(const char *text, int64_t most, int64_t *number_r)
{
    return bytes_to_i64(bytes_of(text), number_r) && *number_r >= 1 && *number_r <= most;
}

static bool read_box(const char *text, struct picture_box *box)
{
    struct bytes rest = bytes_of(text), width = bytes_cut(&rest, 'x');
    return bytes_to_i64(width, &box->width) && bytes_to_i64(rest, &box->height) && box->width >= 1 &&
           box->width <= SIDE_MOST && box->height >= 1 && box->height <= SIDE_MOST;
}

/* All of the standard input. */
static enum picture_end read_image(int64_t most, struct bytes *image_r)
{
    char *data = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (room - size < PIECE_BYTES) {
            room = room ? 2 * room : 4 * PIECE_BYTES;
            char *more = realloc(data, room);
            if (!more) {
                free(data);
                return PICTURE_BYTES;
            }
            data = more;
        }
        ssize_t got = read(STDIN_FILENO, data + size, PIECE_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            *image_r = (struct bytes){data, size};
            return got < 0 ? PICTURE_FAILED : PICTURE_DONE;
        }
        size += (size_t)got;
        if ((int64_t)size > most) {
            free(data);
            return PICTURE_BYTES;
        }
    }
}

/* Nothing is written unless all thumbnails can be made. */
static enum picture_end stamp_thumbnail_make(const struct job *job)
{
    struct bytes image, made[BOXES_MOST];
    char line[32];
    enum picture_end end = read_image(job->bytes, &image);
    if (end == PICTURE_DONE)
        end = picture_judge(image, job->pixels);
    for (size_t i = 0; i < job->box_count && end == PICTURE_DONE; i++)
        end = picture_shrink(image, job->boxes[i], &made[i]);
    for (size_t i = 0; i < job->box_count && end == PICTURE_DONE; i++) {
        int size = snprintf(line, sizeof line, "%zu\n", made[i].size);
        if (!bytes_write(STDOUT_FILENO, (struct bytes){line, (size_t)size}) ||
            !bytes_write(STDOUT_FILENO, made[i]))
            end = PICTURE_FAILED;
    }
    return end;
}

static int stamp_thumbnail_run(const char *program, const struct job *job)
{
    /* AddressSanitizer reserves more addresses than there is memory. */
    const struct confinement confinement = {
        .memory_bytes = IS_SANITIZED ? 0 : job->memory_mb * MIB, .cpu_s = job->cpu_s, .files = FILES};
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* warnings of libraries */
    mallopt(M_ARENA_MAX, 1);
    if (!picture_start(program)) {
        fprintf(stderr, "stamp-thumbnail: libvips cannot be used\n");
        return PICTURE_FAILED;
    }
    if (!confinement_enter(&confinement)) {
        fprintf(stderr, "stamp-thumbnail: this process cannot be confined: %s\n", strerror(errno));
        return PICTURE_FAILED;
    }
    return stamp_thumbnail_make(job);
}

enum { OPTION_VERSION = 256, OPTION_BYTES, OPTION_PIXELS, OPTION_MEMORY, OPTION_CPU };

static const struct option known[] = {
    {"bytes", required_argument, NULL, OPTION_BYTES},
    {"pixels", required_argument, NULL, OPTION_PIXELS},
    {"memory-mb", required_argument, NULL, OPTION_MEMORY},
    {"cpu-s", required_argument, NULL, OPTION_CPU},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},
    {0},
};

int main(int argc, char **argv)
{
    struct job job = {.bytes = 64 * MIB, .pixels = 100000000, .memory_mb = 1024, .cpu_s = 20};
    bool is_right = true;
    for (int option; is_right && (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (option == 'h' || option == OPTION_VERSION) {
            if (option == 'h')
                stamp_thumbnail_print_help();
            else
                puts("stamp-thumbnail " PACKAGE_VERSION);
            return fflush(stdout) ? 1 : 0;
        }
        is_right =
            (option == OPTION_BYTES && stamp_thumbnail_read_number(optarg, INT64_C(1) << 32, &job.bytes)) ||
            (option == OPTION_PIXELS && stamp_thumbnail_read_number(optarg, INT64_C(1) << 40, &job.pixels)) ||
            (option == OPTION_MEMORY &&
             stamp_thumbnail_read_number(optarg, INT64_C(1) << 20, &job.memory_mb)) ||
            (option == OPTION_CPU && stamp_thumbnail_read_number(optarg, 3600, &job.cpu_s));
    }
    is_right = is_right && optind < argc && argc - optind <= BOXES_MOST;
    for (int i = optind; is_right && i < argc; i++)
        is_right = read_box(argv[i], &job.boxes[job.box_count++]);
    if (!is_right) {
        fprintf(stderr, "stamp-thumbnail: invalid arguments; see --help\n");
        return PICTURE_USAGE;
    }
    _exit(stamp_thumbnail_run(argv[0],
                              &job)); /* what libraries do at the end of a process is not worth a risk */
}
