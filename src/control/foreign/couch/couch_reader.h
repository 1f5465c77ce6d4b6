/* couch_reader: the rows or documents of a database of CouchDB that was saved in a file, one after the other.
 *
 * An answer to _all_docs, {"total_rows":n,"offset":n,"rows":[row,…]}; or values one after the other, each
 * {"docs":[document,…]}, [document,…], a document or a row.  On one line or on many; memory holds one. */
#ifndef STAMPD_CONTROL_FOREIGN_COUCH_COUCH_READER_H
#define STAMPD_CONTROL_FOREIGN_COUCH_COUCH_READER_H

#include "base/builder.h"
#include "edge/crypto/digest.h"

struct couch_reader {
    int fd;
    int64_t size, offset; /* of the file; of what is read */
    struct digest *digest;
    struct builder buffer;
    size_t start; /* of what is not returned yet, in the buffer */
    bool is_ended, has_failed;
    enum couch_place { COUCH_OUTSIDE, COUCH_IN_ARRAY, COUCH_IN_OBJECT } place; /* in: in the list of one */
    bool is_answer;  /* it has "rows", and nothing follows */
    bool has_row;    /* the list */
    bool has_values; /* the file */
};

/* On failure reports why. */
MUST_USE bool couch_reader_open(struct couch_reader *reader, const char *path);
void couch_reader_close(struct couch_reader *reader);

enum couch_event { COUCH_ROW, COUCH_END, COUCH_FAILED };
/* A row, or a document, is the text of an object whose brackets match; its JSON is not checked.  It is valid
 * until the next call.  COUCH_FAILED: `problem_r` says why. */
enum couch_event couch_reader_next(struct couch_reader *reader, struct bytes *row_r, const char **problem_r);
/* At the end: the digest of the file. */
void couch_reader_digest(struct couch_reader *reader, char hex_r[CRYPTO_SHA256_HEX + 1]);

#endif
