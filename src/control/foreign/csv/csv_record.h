/* csv_record: the fields of one record of a CSV file (RFC 4180).  Pure. */
#ifndef STAMPD_CONTROL_FOREIGN_CSV_CSV_RECORD_H
#define STAMPD_CONTROL_FOREIGN_CSV_CSV_RECORD_H

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
/* A character that may separate fields. */
bool csv_record_is_separator(char c);
/* Which separator does the first line of a file have, outside of quotes?  `named`: the one that it must have,
 * unless it has none at all; 0: a comma, else a semicolon or tab.  Returns 0 where one column would have the
 * names of several: `problem_r`, in the arena, says why. */
MUST_USE char csv_record_separator(struct arena *arena, struct bytes line, char named,
                                   const char **problem_r);
/* Reads a record without the newline at its end.  False: `problem_r`, static, says why. */
MUST_USE bool csv_record_read(struct arena *arena, struct bytes text, char separator,
                              struct csv_record *record_r, const char **problem_r);

#endif
