/* A tiny FastCGI client for tests: composes the records of a request, reads an answer to its end. */
#ifndef STAMPD_TEST_FASTCGI_CLIENT_H
#define STAMPD_TEST_FASTCGI_CLIENT_H

#include "base/builder.h"

struct client_pair {
    const char *name, *value;
};

/* Connects to a Unix socket; -1 with errno. */
int client_connect(const char *path);
/* One record of any type. */
void client_add_record(struct builder *out, int type, struct bytes content);
/* BEGIN_REQUEST and all parameters (the list ends with a NULL name); CONTENT_LENGTH is not added. */
void client_add_head(struct builder *out, bool keep, const struct client_pair *pairs);
/* The whole of a request: head, body, end. */
void client_add_request(struct builder *out, bool keep, const struct client_pair *pairs, struct bytes body);
bool client_write(int fd, struct bytes data);
/* Reads up to END_REQUEST; the content of STDOUT records is appended.  False: closed or broken before. */
bool client_read_answer(int fd, struct builder *answer);

#endif
