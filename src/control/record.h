/* record: one line of JSON for a program, an object: what a command prints with --json in place of a line for
 * people.  Members stand in the order in which they are added. */
#ifndef STAMPD_CONTROL_RECORD_H
#define STAMPD_CONTROL_RECORD_H

#include "base/builder.h"

/* Starts as {0}; record_print ends and empties it. */
struct record {
    struct builder text;
};

/* NO_BYTES: null.  Bytes that are not UTF-8 become '?'. */
void record_add_text(struct record *record, const char *name, struct bytes value);
void record_add_word(struct record *record, const char *name, const char *value); /* NULL: null */
void record_add_i64(struct record *record, const char *name, int64_t value);
void record_add_bool(struct record *record, const char *name, bool value);
/* `json` is a JSON text; line ends between its members become blanks. */
void record_add_json(struct record *record, const char *name, struct bytes json);
/* Writes the object and a line end to standard output. */
void record_print(struct record *record);

/* The entry for the option. */
#define RECORD_JSON_LINE(is_json)                                                                            \
    {                                                                                                        \
        .name = "json", .help = "Print JSON, one object a line.", .flag = (is_json)                          \
    }

#endif
