/* input: reads in blocks and returns whole lines. */
#include "control/documents/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_SIZE = 256 << 10, LINE_MAX_BYTES = 1 << 30 };

void input_take(struct input *input, int fd)
{
    *input = (struct input){.fd = fd, .stop_fd = -1, .line_end = '\n', .line_most = LINE_MAX_BYTES};
}

bool input_open(struct input *input, const char *path, int stop_fd)
{
    struct stat status;
    input_take(input, strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC));
    input->stop_fd = stop_fd;
    if (input->fd < 0 || fstat(input->fd, &status) != 0)
        return false;
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return false;
    }
    input->size = S_ISREG(status.st_mode) ? status.st_size : 0;
    return true;
}

void input_close(struct input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    builder_free(&input->buffer);
}

bool input_seek(struct input *input, int64_t line, int64_t offset)
{
    char before = '\n';
    if (offset > input->size || (offset > 0 && pread(input->fd, &before, 1, offset - 1) != 1))
        return false;
    /* the last line may lack its newline */
    if ((before != '\n' && offset != input->size) || lseek(input->fd, offset, SEEK_SET) != offset)
        return false;
    input->line = line;
    input->offset = offset;
    return true;
}

/* Reads more into the buffer. */
static enum input_result read_more(struct input *input, bool may_wait)
{
    struct pollfd waits[] = {{.fd = input->fd, .events = POLLIN}, {.fd = input->stop_fd, .events = POLLIN}};
    int ready;
    while ((ready = poll(waits, 2, may_wait ? -1 : 0)) < 0)
        if (errno != EINTR)
            return INPUT_FAILED;
    if (waits[1].revents)
        return INPUT_STOPPED;
    if (!ready)
        return INPUT_NOT_YET;
    if (input->start) { /* lines already returned make room */
        memmove(input->buffer.data, input->buffer.data + input->start, input->buffer.size - input->start);
        input->buffer.size -= input->start;
        input->searched -= input->start;
        input->start = 0;
    }
    ssize_t got = read(input->fd, builder_reserve(&input->buffer, READ_SIZE), READ_SIZE);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? INPUT_LINE : INPUT_FAILED;
    input->buffer.size += (size_t)got;
    input->is_ended = got == 0;
    return INPUT_LINE;
}

enum input_result input_next(struct input *input, bool may_wait, struct bytes *text_r)
{
    for (;;) {
        const char *data = input->buffer.data;
        size_t left = input->buffer.size - input->searched;
        const char *end = left ? memchr(data + input->searched, input->line_end, left) : NULL;
        input->searched = end ? (size_t)(end - data) : input->buffer.size;
        bool is_last = !end && input->is_ended && input->buffer.size > input->start;
        if (input->searched - input->start > input->line_most) {
            errno = EFBIG;
            return INPUT_FAILED;
        }
        if (end || is_last) {
            *text_r = (struct bytes){data + input->start, input->searched - input->start};
            input->start = input->searched = input->searched + (end ? 1 : 0);
            input->offset += (int64_t)text_r->size + (end ? 1 : 0);
            input->line++;
            return INPUT_LINE;
        }
        if (input->is_ended)
            return INPUT_END;
        enum input_result result = read_more(input, may_wait);
        if (result != INPUT_LINE)
            return result;
    }
}
