/* journal_contents: the contents that a message needs and the disk alone has (records/records_fetch.h). */
#ifndef STAMPD_JOURNAL_JOURNAL_CONTENTS_H
#define STAMPD_JOURNAL_JOURNAL_CONTENTS_H

#include "records/records_fetch.h"

enum {
    JOURNAL_CONTENTS_MOST = 64, /* of one message */
    JOURNAL_READ_TRIES = 100    /* of a message, while its records change */
};

struct journal_reader;

/* Zeroed: none. */
struct journal_contents {
    struct records_fetched *list;
    size_t count;
    size_t ended; /* of these, the first ones: they were read, or cannot be */
    int tries;    /* how often the message has waited */
    int deaths;   /* of children, reading the same content */
    void (*done)(void *context);
    void *context;
    struct journal_reader *reader; /* while it waits: journal_reader.h */
    struct journal_contents *next;
};

/* Adds what the last command needed.  Neither of them while it waits. */
void journal_contents_want(struct journal_contents *contents, const struct records *records);
/* As zeroed, but for `done`. */
void journal_contents_forget(struct journal_contents *contents);
/* Bytes of what was read. */
size_t journal_contents_memory(const struct journal_contents *contents);

#endif
