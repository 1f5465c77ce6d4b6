/* line_input: a fixed buffer, and the place up to which its lines are taken. */
#include "line_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { END_BYTES = 2 };

int line_input_open(struct line_input *input, int fd, size_t longest)
{
    *input =
        (struct line_input){.fd = fd, .bytes = malloc(longest + END_BYTES), .capacity = longest + END_BYTES};
    return input->bytes ? 0 : ENOMEM;
}

void line_input_close(struct line_input *input)
{
    free(input->bytes);
}

bool line_input_read(struct line_input *input)
{
    ssize_t count;
    if (input->is_ended || input->error)
        return false;
    input->size -= input->start;
    memmove(input->bytes, input->bytes + input->start, input->size);
    input->start = 0;
    do
        count = read(input->fd, input->bytes + input->size, input->capacity - input->size);
    while (count < 0 && errno == EINTR);
    input->error = count < 0 ? errno : 0;
    input->is_ended = !count;
    input->size += count > 0 ? (size_t)count : 0;
    return !input->error;
}

bool line_input_take(struct line_input *input, const char **line_r, size_t *size_r)
{
    const char *start = input->bytes + input->start;
    size_t size = input->size - input->start;
    const char *end = size ? memchr(start, '\n', size) : NULL;
    if (!end && (!size || (size < input->capacity && !input->is_ended)))
        return false;
    *line_r = start;
    *size_r = end ? (size_t)(end - start) : size;
    input->start += *size_r + (end != NULL);
    if (*size_r && start[*size_r - 1] == '\r')
        --*size_r;
    return true;
}
