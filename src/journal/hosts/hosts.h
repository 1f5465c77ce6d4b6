/* hosts: this host as one of those that hold the records of spread namespaces together: it joins the list in
 * z, keeps its part of the records in a memory of its own, and asks the others.
 *
 * The algorithm is src/cluster; here are its sockets, its clock and its list.  Answers come later, from the
 * loop, and never within the call that has asked. */
#ifndef STAMPD_JOURNAL_HOSTS_HOSTS_H
#define STAMPD_JOURNAL_HOSTS_HOSTS_H

#include "base/settings.h"
#include "cluster/cluster.h"
#include "edge/events.h"
#include "records/records.h"

enum { HOSTS_ASKS_MOST = 1024, HOSTS_RESULTS_MOST = 32 };

struct hosts;

/* As cluster_address and the settings beside it say.  `hosts_r` becomes NULL when cluster_address is empty.
 * False: one line in `problem`. */
MUST_USE bool hosts_open(struct hosts **hosts_r, struct events *events, const struct settings *settings,
                         struct records *records, char *problem, size_t problem_size);
/* No memo waits. */
void hosts_close(struct hosts *hosts); /* NULL is allowed */

/* What was answered, with the content in its own memory. */
struct hosts_result {
    struct cluster_answer answer;
    int64_t end_ms; /* of the record, as clock_present_ms */
};

/* The answers to what a message has asked so far: while it is run again, they answer the same questions.
 * Zeroed but for `done`: none. */
struct hosts_memo {
    struct hosts_result results[HOSTS_RESULTS_MOST];
    size_t count, next; /* `next`: what this run of the message has used */
    bool is_asking, is_ready;
    int64_t began_ms, most_ms; /* when the message asked first, and the longest time to live then; 0: never */
    char sum[8];               /* of the last ADD */
    uint64_t cookie;
    void (*done)(void *context); /* an answer has come */
    void *context;
    struct hosts_memo *earlier, *later; /* among those for which an answer has come */
};

/* The message is run again from its beginning. */
static inline void hosts_memo_rewind(struct hosts_memo *memo)
{
    memo->next = 0;
}
/* As zeroed, but for `done`; an answer that is under way is dropped. */
void hosts_memo_forget(struct hosts *hosts, struct hosts_memo *memo);
size_t hosts_memo_memory(const struct hosts_memo *memo);

/* Asks; the level 0: among all hosts.  `done` is called later.  False: too much is asked already, of all or
 * of the namespace. */
MUST_USE bool hosts_ask(struct hosts *hosts, struct hosts_memo *memo, const struct cluster_request *request);
/* The longest time to live; 0: this host takes no part. */
int64_t hosts_ttl_most_ms(const struct hosts *hosts);
/* The number of levels that addresses have; 0: it is not known. */
unsigned hosts_depth(const struct hosts *hosts);
/* The longest content that all hosts take, in bytes. */
size_t hosts_content_most(const struct hosts *hosts);

/* A key in a spread namespace begins with the namespace's code, a zero byte and which of those that have had
 * its code; so many bytes. */
enum { HOSTS_MADE_BYTES = 8 };
size_t hosts_space_size(struct bytes key);

#endif
