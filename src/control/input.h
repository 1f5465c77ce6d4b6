/* input: the lines of a file or pipe, with their numbers and places. */
#ifndef STAMPD_CONTROL_INPUT_H
#define STAMPD_CONTROL_INPUT_H

#include "base/bytes.h"

struct input {
    int fd;
    int stop_fd;    /* readable: no more is wanted; -1: none */
    bool is_ended;  /* nothing is left to be read from fd */
    int64_t size;   /* of a file, else 0 */
    int64_t line;   /* number of the last line given, from 1 */
    int64_t offset; /* of the byte behind it */
    struct builder buffer;
    size_t start;    /* of what is not given yet, in the buffer */
    size_t searched; /* up to where there is no newline behind start */
};

enum input_result { INPUT_LINE, INPUT_NOT_YET, INPUT_END, INPUT_STOPPED, INPUT_FAILED };

/* `path` "-": standard input. */
MUST_USE bool input_open(struct input *input, const char *path, int stop_fd);
void input_close(struct input *input);
/* Goes to a place that a former run has noted: the byte behind line `line`.  False when no line ends there:
 * the file is another. */
MUST_USE bool input_seek(struct input *input, int64_t line, int64_t offset);
/* The next line, without its newline; until the next call.  INPUT_NOT_YET: it has not come, only when
 * `may_wait` is false. INPUT_FAILED: errno says why, EFBIG for a line too long. */
enum input_result input_next(struct input *input, bool may_wait, struct bytes *text_r);

#endif
