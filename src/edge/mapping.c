/* mapping: the file's lock EX proves that no user is alive, so its holder creates the segment anew; every
 * process uses the segment under SH.
 *
 * flock converts EX to SH by releasing it first, so another starter may obtain EX in between and create the
 * segment again.  This is harmless: nothing is read, mapped or promised before SH is held, the file is
 * created with plain writes, and each process, its creator included, checks the head again under SH.  From
 * then on EX cannot be obtained, so no process changes the file's size under a mapping.
 *
 * A creator that dies half-way leaves a head with layout 0, which keeps installation and generation: the next
 * starter begins again with a higher generation.  A process that finds such a head under SH releases its lock
 * and tries again. */
#include "edge/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"

enum { OTHER_STARTERS_MS = 15000, PAUSE_LEAST_MS = 2, PAUSE_SPREAD_MS = 16 };

_Static_assert(sizeof(struct mapping_head) == 64, "the head is one cache line and part of the layout");

/* The caller's requirements, and where to report errors. */
struct mapping_request {
    const char *path;
    uint64_t magic;
    uint32_t layout;
    size_t size;
    char *problem;
    size_t problem_size;
};

enum step { STEP_DONE, STEP_AGAIN, STEP_REFUSED };

PRINTF_LIKE(2, 3)
static enum step mapping_refuse(const struct mapping_request *request, const char *format, ...)
{
    int used = snprintf(request->problem, request->problem_size, "segment %s: ", request->path);
    if (used > 0 && (size_t)used < request->problem_size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(request->problem + used, request->problem_size - (size_t)used, format, arguments);
        va_end(arguments);
    }
    return STEP_REFUSED;
}

/* Bytes beyond the end of the file read as zero. */
static bool mapping_read_head(int fd, struct mapping_head *head_r)
{
    memset(head_r, 0, sizeof *head_r);
    return pread(fd, head_r, sizeof *head_r, 0) >= 0;
}

static bool write_head(int fd, const struct mapping_head *head)
{
    ssize_t wrote = pwrite(fd, head, sizeof *head, 0);
    if (wrote >= 0 && (size_t)wrote < sizeof *head)
        errno = ENOSPC;
    return wrote == (ssize_t)sizeof *head;
}

/* Is the file empty, or cut off before its first head was written? */
static bool mapping_is_blank(const struct mapping_head *head, const struct stat *status)
{
    static const struct mapping_head blank;
    return status->st_size <= (off_t)sizeof *head && memcmp(head, &blank, sizeof blank) == 0;
}

static uint32_t draw_installation(void)
{
    uint32_t number;
    crypto_random(&number, sizeof number);
    return (uint32_t)MAPPING_INSTALLATION_MARK << 24 | (number & 0xffffff);
}

/* Allocates the whole segment now: a full disk is an error here, a SIGBUS later. */
static int take_room(int fd, size_t size)
{
    int error;
    do
        error = posix_fallocate(fd, 0, (off_t)size);
    while (error == EINTR);
    return error;
}

/* Zeros after the head.  The file is never cut: a reader that holds no lock (segment/public_view.h) may have
 * mapped it, and would die of a page that is beyond its end. */
static bool mapping_clear(int fd, size_t size)
{
    struct stat status;
    if (fstat(fd, &status))
        return false;
    off_t end = status.st_size > (off_t)size ? status.st_size : (off_t)size;
    off_t head = sizeof(struct mapping_head);
    if (status.st_size <= head ||
        !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, head, end - head))
        return true;
    return ftruncate(fd, head) == 0; /* the file system has no holes */
}

/* Under EX: creates a new generation, with zeros after its head. */
static enum step mapping_make(const struct mapping_request *request, int fd, uint64_t *generation_r)
{
    struct mapping_head head;
    struct stat status;
    if (fstat(fd, &status) || !mapping_read_head(fd, &head))
        return mapping_refuse(request, "%s", strerror(errno));
    if (!mapping_is_blank(&head, &status) && head.magic != request->magic)
        return mapping_refuse(request, "the file holds something else; it is left as it is");
    if (head.magic != request->magic || head.installation >> 24 != MAPPING_INSTALLATION_MARK)
        head.installation = draw_installation();
    head = (struct mapping_head){
        .magic = request->magic, .installation = head.installation, .generation = head.generation + 1};
    crypto_random(&head.seed, sizeof head.seed);
    /* The number must survive a power failure: it identifies former database sessions. */
    if (!write_head(fd, &head) || fdatasync(fd) || !mapping_clear(fd, request->size))
        return mapping_refuse(request, "%s", strerror(errno));
    crash_at(CRASH_SEGMENT_NUMBERED);
    int error = take_room(fd, request->size);
    if (error) {
        if (!mapping_clear(fd, request->size))
            return mapping_refuse(request, "%s", strerror(errno));
        return mapping_refuse(request, "no room for %zu bytes: %s", request->size, strerror(error));
    }
    head.layout = request->layout;
    head.size = request->size;
    if (!write_head(fd, &head))
        return mapping_refuse(request, "%s", strerror(errno));
    crash_at(CRASH_SEGMENT_MADE);
    *generation_r = head.generation;
    return STEP_DONE;
}

/* Under SH: is it a complete segment as required, and still the file at the path? */
static enum step examine(const struct mapping_request *request, int fd, struct mapping_head *head_r)
{
    struct stat status, named;
    if (fstat(fd, &status) || !mapping_read_head(fd, head_r))
        return mapping_refuse(request, "%s", strerror(errno));
    if (stat(request->path, &named) || named.st_ino != status.st_ino || named.st_dev != status.st_dev)
        return STEP_AGAIN;
    if (mapping_is_blank(head_r, &status) || (head_r->magic == request->magic && head_r->layout == 0))
        return STEP_AGAIN;
    if (head_r->magic != request->magic)
        return mapping_refuse(request, "the file holds something else; it is left as it is");
    if (head_r->layout != request->layout)
        return mapping_refuse(request,
                              "in use by another release (layout %u, here %u): stop its instances first",
                              head_r->layout, request->layout);
    if (head_r->size != request->size)
        return mapping_refuse(request,
                              "in use with %llu bytes, here %zu: segment_slots, shared_cache_mb and "
                              "public_answers_mb (of records: "
                              "records_mb) must be the same in all "
                              "instances",
                              (unsigned long long)head_r->size, request->size);
    if ((uint64_t)status.st_size < head_r->size) /* that of a former generation may have been larger */
        return mapping_refuse(request, "the file was cut to %lld bytes: stop its instances first",
                              (long long)status.st_size);
    return STEP_DONE;
}

static enum step map(const struct mapping_request *request, int fd, bool is_new, struct mapping *mapping_r)
{
    void *memory = mmap(NULL, request->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return mapping_refuse(request, "%s", strerror(errno));
    *mapping_r = (struct mapping){.memory = memory, .size = request->size, .fd = fd, .is_new = is_new};
    return STEP_DONE;
}

/* Takes EX if there are no live users, and creates; then SH, examines, maps. */
static enum step lock_and_map(const struct mapping_request *request, int fd, struct mapping *mapping_r)
{
    uint64_t made = 0; /* the generation that we created; 0: none */
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        enum step step = mapping_make(request, fd, &made);
        if (step != STEP_DONE)
            return step;
    } else if (errno != EWOULDBLOCK) {
        return mapping_refuse(request, "%s", strerror(errno));
    }
    if (flock(fd, LOCK_SH | LOCK_NB))
        return errno == EWOULDBLOCK ? STEP_AGAIN : mapping_refuse(request, "%s", strerror(errno));
    struct mapping_head head;
    enum step step = examine(request, fd, &head);
    return step == STEP_DONE ? map(request, fd, head.generation == made, mapping_r) : step;
}

static enum step try_once(const struct mapping_request *request, struct mapping *mapping_r)
{
    int fd = open(request->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return mapping_refuse(request, "%s", strerror(errno));
    struct stat status;
    enum step step;
    if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
        step = mapping_refuse(request, "not a plain file");
    else
        step = lock_and_map(request, fd, mapping_r);
    if (step != STEP_DONE)
        close(fd);
    return step;
}

bool mapping_open(struct mapping *mapping, const char *path, uint64_t magic, uint32_t layout, size_t size,
                  char *problem, size_t problem_size)
{
    assert(magic && layout && size >= sizeof(struct mapping_head));
    struct mapping_request request = {path, magic, layout, size, problem, problem_size};
    int64_t deadline_ms = clock_monotonic_ms() + OTHER_STARTERS_MS;
    for (;;) {
        enum step step = try_once(&request, mapping);
        if (step != STEP_AGAIN)
            return step == STEP_DONE;
        if (clock_monotonic_ms() >= deadline_ms) {
            mapping_refuse(&request, "another process has been making it for more than %d s",
                           OTHER_STARTERS_MS / 1000);
            return false;
        }
        uint8_t chance; /* random, so that competing starters do not stay in step */
        crypto_random(&chance, sizeof chance);
        clock_sleep_ms(PAUSE_LEAST_MS + chance % PAUSE_SPREAD_MS);
    }
}

/* EX proves, as at a start, that no user is alive.  Layout 0 says that there is no segment behind the head,
 * which keeps installation and generation for the next start. */
void mapping_erase(struct mapping *mapping)
{
    struct mapping_head head;
    if (flock(mapping->fd, LOCK_EX | LOCK_NB) || !mapping_read_head(mapping->fd, &head))
        return;
    head.layout = 0;
    if (!write_head(mapping->fd, &head) || !mapping_clear(mapping->fd, mapping->size))
        log_warning("a file of shared memory cannot be erased: %m");
}

void mapping_close(struct mapping *mapping)
{
    munmap(mapping->memory, mapping->size);
    close(mapping->fd);
    *mapping = (struct mapping){.fd = -1};
}

bool mapping_is_in_memory(const char *path)
{
    enum { TMPFS = 0x01021994, RAMFS = 0x858458f6 }; /* statfs(2) */
    char part[PATH_MAX];
    struct statfs status;
    int size = snprintf(part, sizeof part, "%s", path);
    if (size < 0 || (size_t)size >= sizeof part)
        return false;
    for (char *slash; statfs(part, &status) != 0; *slash = '\0')
        if (!(slash = strrchr(part, '/')) || slash == part)
            return false;
    return (uint32_t)status.f_type == TMPFS || (uint32_t)status.f_type == RAMFS;
}

void *mapping_share_passed(size_t size, int *descriptor)
{
    struct stat status;
    if (*descriptor < 0) {
        *descriptor = memfd_create("stampd", MFD_CLOEXEC);
        if (*descriptor < 0 || ftruncate(*descriptor, (off_t)size))
            log_fatal("cannot map shared memory: %m");
    } else if (fstat(*descriptor, &status) || status.st_size != (off_t)size) {
        return NULL;
    }
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    if (memory == MAP_FAILED)
        log_fatal("cannot map shared memory: %m");
    return memory;
}

void *mapping_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        log_fatal("cannot map shared memory: %m");
    return memory;
}

void *mapping_keep(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (!madvise(memory, size, MADV_WIPEONFORK))
        return memory;
    munmap(memory, size);
    return NULL;
}

const void *mapping_view(int fd, size_t size)
{
    const void *view = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    return view == MAP_FAILED ? NULL : view;
}

void mapping_view_end(const void *view, size_t size)
{
    if (view)
        munmap((void *)(uintptr_t)view, size);
}
