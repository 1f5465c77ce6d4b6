/* line_input: lines of a descriptor as soon as they are there, in a buffer of one size. */
#ifndef STAMPD_LINE_INPUT_H
#define STAMPD_LINE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

struct line_input {
    int fd;
    char *bytes; /* read, and not taken: from `start` to `size` */
    size_t start, size, capacity;
    bool is_ended;
    int error; /* of reading, which ends too */
};

/* `longest`: bytes of a line, without its end.  ENOMEM. */
int line_input_open(struct line_input *input, int fd, size_t longest);
void line_input_close(struct line_input *input);
/* Reads what is there, at least a byte, when line_input_take has found no line.  False: the end. */
bool line_input_read(struct line_input *input);
/* The next line that is whole, valid until the next read, without its end, which may have a carriage return.
 * One that is too long has more than `longest` bytes, and is cut.  False: there is none. */
bool line_input_take(struct line_input *input, const char **line_r, size_t *size_r);

#endif
