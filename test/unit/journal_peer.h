/* journal_peer: a client of stamp-journal for tests, which knows every byte. */
#ifndef STAMPD_TEST_JOURNAL_PEER_H
#define STAMPD_TEST_JOURNAL_PEER_H

#include "base/builder.h"

enum { PEER_TEXT_MOST = 100, PEER_PATIENCE_S = 20 };

/* An answer; without a record, its value is "". */
struct peer_answer {
    unsigned identifier;
    char error[PEER_TEXT_MOST], value[PEER_TEXT_MOST];
};

/* A descriptor; -1: nobody listens. */
int peer_connect(const char *path);
/* The same, with the key "key" to the namespace lab; fails the test if that is not to be had. */
int peer_enter(const char *path);
int peer_enter_with(const char *path, const char *key); /* with another one */

/* Messages in one piece are run together.  Each returns its identifier. */
unsigned peer_add_set(struct builder *text, const char *key, const char *value, unsigned flags);
unsigned peer_add_get(struct builder *text, const char *key);
void peer_send(int client, struct builder *text); /* and frees it */
unsigned peer_send_set(int client, const char *key, const char *value, unsigned flags);
unsigned peer_send_get(int client, const char *key);

/* False: the connection has ended before. */
bool peer_receive(int client, struct peer_answer *answer_r);
/* The answer to this request, which was done; `value`: of its record, "": it has none. */
void peer_expect_answer(int client, unsigned identifier, const char *value);
void peer_expect_error(int client, const char *error);
/* The server ends the connection; the descriptor is closed. */
void peer_expect_end(int client);
/* Nothing has arrived. */
void peer_expect_nothing(int client);

/* A request and its answer. */
void peer_set(int client, const char *key, const char *value, unsigned flags);
void peer_get(int client, const char *key, const char *value);

#endif
