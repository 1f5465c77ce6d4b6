/* foreign client: a holder of a document as somebody else would write it, knowing the JSON of
 * synchronisations only (protocol.md), none of the server's structures. */
#ifndef STAMPD_TEST_FOREIGN_CLIENT_H
#define STAMPD_TEST_FOREIGN_CLIENT_H

#include "base/arena.h"
#include "base/bytes.h"

#define FOREIGN_ITEMS 32

struct foreign_item {
    char name[64]; /* "Class" or "Class.key" */
    char content[64];
    bool is_raw, is_dead;
    int64_t version;
};

struct foreign_client {
    int64_t version, ctime, dtime;
    struct foreign_item items[FOREIGN_ITEMS]; /* in no order */
    size_t count;
    /* Of the last answer: */
    size_t items_came, dels_came;
    bool keys_came;
};

/* Takes an answer in; fails the test when it is not of the form agreed. */
void foreign_client_apply(struct foreign_client *client, struct arena *arena, struct bytes json);
/* Forgets removals up to `dtime`. */
void foreign_client_forget(struct foreign_client *client, int64_t dtime);
const struct foreign_item *foreign_client_find(const struct foreign_client *client, struct bytes iclass,
                                               struct bytes key);

#endif
