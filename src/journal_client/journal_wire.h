/* journal_wire: requests to bytes, and bytes to answers. */
#ifndef STAMPD_JOURNAL_CLIENT_JOURNAL_WIRE_H
#define STAMPD_JOURNAL_CLIENT_JOURNAL_WIRE_H

#include "journal_client/stampd_journal.h"

/* Bytes that one request has at most, without its value. */
enum { JOURNAL_WIRE_HEAD_MOST = 64, JOURNAL_WIRE_KEY_MOST = 4200 };

/* The bytes that it takes; 0: it is not well formed. */
size_t journal_wire_size(const struct stampd_journal_request *request);
/* Writes them. */
void journal_wire_write(const struct stampd_journal_request *request, unsigned identifier,
                        unsigned char *bytes_r);

/* Reads the first answer; returns its size; 0: more bytes must come; -1: it is no answer.  The texts are
 * slices. */
ssize_t journal_wire_read(const unsigned char *bytes, size_t size, struct stampd_journal_answer *answer_r);

#endif
