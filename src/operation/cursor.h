/* cursor: where the next page of a list or search begins: after a row, which is a few texts.  Bound to the
 * question.  For a caller to which rules apply, and which may not know the last row read, it is of
 * one length whatever the row, and bound to the account too.  Encrypted. */
#ifndef STAMPD_OPERATION_CURSOR_H
#define STAMPD_OPERATION_CURSOR_H

#include "operation/attempt.h"

enum {
    CURSOR_TEXTS_MOST = 6,
    CURSOR_NAME_MOST = 255 /* bytes of an id or a key: limit_name_bytes is at most that */
};

/* The row, and the most bytes that its texts can have together. */
struct cursor_row {
    struct bytes texts[CURSOR_TEXTS_MOST];
    size_t count, bytes_most;
};

/* A text in the arena. */
MUST_USE enum fault cursor_make(struct attempt *attempt, struct bytes question, const struct cursor_row *row,
                                struct bytes *text_r);
/* Reads the texts, UTF-8, of a row of `count`.  is_ours_r false: it is of another caller or question, or not
 * of this server. */
MUST_USE enum fault cursor_read(struct attempt *attempt, struct bytes question, struct bytes text,
                                struct cursor_row *row, bool *is_ours_r);

#endif
