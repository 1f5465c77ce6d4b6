/* live_page: what a search has found, as its listeners learn of it: the rows of its first page, without their
 * contents, or the one answer of a count or of totals.  Pure. */
#ifndef STAMPD_LIVE_TOPICS_LIVE_PAGE_H
#define STAMPD_LIVE_TOPICS_LIVE_PAGE_H

#include "base/arena.h"
#include "base/builder.h"

enum { LIVE_STAMP_CHARACTERS = 32 };

struct live_row {
    struct bytes id, key;
    int64_t version; /* of the item or document; 0: of an id alone */
};

struct live_page {
    const struct live_row *rows;
    size_t count;
    bool has_more;
    struct bytes answer;                   /* of a count or of totals, JSON; data NULL: there are rows */
    size_t bytes;                          /* of memory */
    char stamp[LIVE_STAMP_CHARACTERS + 1]; /* equal for equal pages of one search alone */
};

/* Reads an answer of the operation `find`, with its head.  `search` goes into the stamp.  NULL: it is none.
 * The page is one piece of malloc'ed memory; the arena is scratch. */
struct live_page *live_page_read(struct arena *arena, struct bytes search, struct bytes body);

/* Append members of an event, each with a comma before it: the whole page; and how the former page becomes
 * this one (live.md, "Searches").  Both pages have rows. */
void live_page_write(const struct live_page *page, struct builder *json);
void live_page_write_changes(const struct live_page *former, const struct live_page *page,
                             struct arena *arena, struct builder *json);

#endif
