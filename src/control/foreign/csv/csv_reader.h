/* csv_reader: the records of a CSV file, with the lines at which they begin.
 *
 * Lines end with LF or CR LF, or all with CR; empty lines are skipped, as is a byte order mark.  Memory holds
 * one record. */
#ifndef STAMPD_CONTROL_FOREIGN_CSV_CSV_READER_H
#define STAMPD_CONTROL_FOREIGN_CSV_CSV_READER_H

#include "control/foreign/csv/csv_record.h"
#include "control/documents/input.h"
#include "edge/crypto/digest.h"

struct csv_reader {
    struct input input;
    char separator; /* 0: none is named, before the header */
    struct digest *digest;
    struct arena *arena; /* of one record */
    struct builder text; /* of a record of several lines */
    int64_t line;        /* at which the last record begins; it ends at input.line */
};

enum csv_event { CSV_RECORD, CSV_WRONG, CSV_END, CSV_FAILED };

/* `separator`: 0: that of the header.  On failure reports why. */
MUST_USE bool csv_reader_open(struct csv_reader *reader, const char *path, char separator);
void csv_reader_close(struct csv_reader *reader);
/* Reads the first record, and decides which separator the file has; a line sep=X before it names one.
 * Otherwise as csv_reader_next. */
enum csv_event csv_reader_header(struct csv_reader *reader, struct csv_record *record_r,
                                 const char **problem_r);
/* The record is valid until the next call.  CSV_WRONG: `problem_r` says why; reading may go on.
 * CSV_FAILED: `problem_r` says why the file cannot be read. */
enum csv_event csv_reader_next(struct csv_reader *reader, struct csv_record *record_r,
                               const char **problem_r);
/* At the end: the digest of what was read. */
void csv_reader_digest(struct csv_reader *reader, char hex_r[CRYPTO_SHA256_HEX + 1]);

#endif
