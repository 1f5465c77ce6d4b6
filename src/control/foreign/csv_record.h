/* csv_record: the fields of one record of a CSV file (RFC 4180).  Pure. */
#ifndef STAMPD_CONTROL_FOREIGN_CSV_RECORD_H
#define STAMPD_CONTROL_FOREIGN_CSV_RECORD_H

#include "base/arena.h"
#include "base/bytes.h"

struct csv_record {
    struct bytes *fields; /* without quotes; slices of the text, or in the arena */
    size_t count;
};

enum { CSV_FIELDS_MOST = 4096 };

/* Does a quoted field go on after the end of this line, so that the record continues in the next one?
 * `is_open`: one goes on at its beginning.  A record that is wrong ends with the line that shows it. */
bool csv_record_is_open(struct bytes line, char separator, bool is_open);
/* Reads a record without the newline at its end.  False: `problem_r`, static, says why. */
MUST_USE bool csv_record_read(struct arena *arena, struct bytes text, char separator,
                              struct csv_record *record_r, const char **problem_r);

#endif
