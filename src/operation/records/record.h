/* record: the commands of the operation `record`, as its argument has them. */
#ifndef STAMPD_OPERATION_RECORDS_RECORD_H
#define STAMPD_OPERATION_RECORDS_RECORD_H

#include "edge/pattern.h"
#include "operation/reader.h"
#include "records/records.h"

enum {
    RECORD_COMMANDS_MOST = 100, /* of one request */
    RECORD_LISTENED_MOST = 100, /* keys, and prefixes, of a listen */
    RECORD_PAGE_STANDARD = 100, /* records of one GET of many */
    RECORD_PAGE_MOST = 1000,
    RECORD_PASSED_MOST = 5000,    /* keys that the GETs of many of one request may pass */
    RECORD_MATCH_STEPS = 1000000, /* of the matcher of patterns: a request passes no other key after them */
    RECORD_KEY_STEPS = 25000      /* a key that takes more of them does not match; as with stamp-journal */
};

/* Which records a GET of many is about. */
struct record_query {
    struct bytes from, to;        /* keys, both included; NO_BYTES: without end */
    struct bytes prefix, pattern; /* NO_BYTES: any */
    struct bytes after;           /* where the page before has ended; NO_BYTES: the first page */
    int64_t limit;
};

/* What is listened to: these keys, what begins with these prefixes, and the range of the query; if there is
 * none of them, all keys. */
struct record_listen {
    const struct bytes *keys, *prefixes;
    size_t key_count, prefix_count;
    struct bytes since; /* NO_BYTES: now */
    int64_t wait_ms;    /* that the client wants to wait */
};

struct record_request {
    struct records_command command; /* of a listen: a GET without key */
    struct record_query query;
    struct record_listen listen;
    bool is_query, is_listen;
    int64_t ttl_ms;                /* as the client has it; 0: none */
    const struct pattern *pattern; /* of the query; NULL: any */
    const struct json *at;
};

/* Reads one command.  FAULT_AARG, FAULT_ALIMIT. */
MUST_USE enum fault record_read(const struct reader *reader, const struct json *wish,
                                struct record_request *request_r);
/* Could this command change something? */
bool record_is_write(const struct record_request *request);
/* Does the argument have only commands that cannot? */
bool record_is_look(const struct call *call);

/* Appends ,"type":…,"value":… and so on: what was found, after its key. */
void record_write(struct builder *body, const struct records_found *found);

#endif
