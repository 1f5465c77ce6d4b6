/* input: the lines of a file or pipe, with their numbers and offsets. */
#ifndef STAMPD_CONTROL_DOCUMENTS_INPUT_H
#define STAMPD_CONTROL_DOCUMENTS_INPUT_H

#include "base/builder.h"

struct input {
    int fd;
    int stop_fd;      /* readable: stop reading; -1: none */
    bool is_ended;    /* fd is read to its end */
    char line_end;    /* a newline, unless the caller sets another character */
    size_t line_most; /* bytes of a line; less than those of input_open by the caller */
    int64_t size;     /* of a file, else 0 */
    int64_t line;     /* number of the last line returned, from 1 */
    int64_t offset;   /* of the byte after it */
    struct builder buffer;
    size_t start;    /* of what is not returned yet, in the buffer */
    size_t searched; /* up to where there is no newline after start */
};

enum input_result { INPUT_LINE, INPUT_NOT_YET, INPUT_END, INPUT_STOPPED, INPUT_FAILED };

/* `path` "-": standard input. */
MUST_USE bool input_open(struct input *input, const char *path, int stop_fd);
/* The same of a pipe that is open, which input_close closes. */
void input_take(struct input *input, int fd);
void input_close(struct input *input);
/* Seeks to a position that a former run has recorded: the byte after line `line`.  False: no line ends there,
 * so it is another file. */
MUST_USE bool input_seek(struct input *input, int64_t line, int64_t offset);
/* Returns the next line without its newline, valid until the next call.  INPUT_NOT_YET: no line has arrived;
 * only when `may_wait` is false.  INPUT_FAILED: errno has the reason, EFBIG for a line too long. */
enum input_result input_next(struct input *input, bool may_wait, struct bytes *text_r);

#endif
