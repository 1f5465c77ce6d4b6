/* reader: typed, bounds-checked reading of JSON arguments.  Each function records FAULT_AARG or FAULT_ALIMIT
 * in the reply, with the member's name (or the limit and the value) and its path, and returns it.
 *
 * `object` is an object of call->param, call->syncs, or one of these; NULL: param, which is absent. */
#ifndef STAMPD_OPERATION_READER_H
#define STAMPD_OPERATION_READER_H

#include "base/settings.h"
#include "document/documents.h"
#include "operation/reply.h"

struct reader {
    const struct settings *settings;
    struct call *call;
    struct reply *reply;
};

/* An array member of at most `most` elements, else FAULT_ALIMIT under the name of the setting `limit`.
 * Absent: FAULT_AARG. */
MUST_USE enum fault reader_array(const struct reader *reader, const struct json *object, const char *member,
                                 const char *limit, int64_t most, const struct json **array_r);
/* An integer from `least` to `most`; absent or null: `standard`. */
MUST_USE enum fault reader_integer(const struct reader *reader, const struct json *object, const char *member,
                                   int64_t least, int64_t most, int64_t standard, int64_t *value_r);
/* A string; absent or null: NO_BYTES. */
MUST_USE enum fault reader_text(const struct reader *reader, const struct json *object, const char *member,
                                struct bytes *text_r);
/* A boolean; absent or null: false. */
MUST_USE enum fault reader_boolean(const struct reader *reader, const struct json *object, const char *member,
                                   bool *value_r);
/* A class name in the member. */
MUST_USE enum fault reader_class(const struct reader *reader, const struct json *object, const char *member,
                                 struct bytes *class_r);
/* A document's name from the values of the members c and id of `object`; NULL: absent. */
MUST_USE enum fault reader_take_name(const struct reader *reader, const struct json *object,
                                     const struct json *class, const struct json *id,
                                     struct document_name *name_r);
/* Members c and id: the name of a document. */
MUST_USE enum fault reader_name(const struct reader *reader, const struct json *object,
                                struct document_name *name_r);

/* Refuses a member that is not in `known` (names separated by blanks, base/names.h), and suggests the nearest
 * name.  Every object of an argument is read with such a list, so that a misspelt member is never ignored. */
MUST_USE enum fault reader_members(const struct reader *reader, const struct json *object, const char *known);

/* Is `name` a valid id or key: not empty, not too long, without NUL? It is the `member` of `object`. */
MUST_USE enum fault reader_check_length(const struct reader *reader, const struct json *object,
                                        const char *member, struct bytes name);
/* FAULT_AARG: `expected`, one sentence, at the member, or at the value under its name. */
enum fault reader_wrong(const struct reader *reader, const struct json *object, const char *member,
                        const char *expected);
enum fault reader_wrong_value(const struct reader *reader, const struct json *value, const char *name,
                              const char *expected);
/* Over a limit: the setting's name, its value, the actual value.  `value_at`: the value at fault; NULL: no
 * single one. */
enum fault reader_over(const struct reader *reader, const struct json *value_at, const char *limit,
                       int64_t most, int64_t value);
/* The quota of a client or a namespace is used up: the setting's name and its value.  A later request may
 * succeed. */
enum fault reader_busy(const struct reader *reader, const char *limit, int64_t most);
/* Sets the path of the fault that is in the reply already: that of the value, or of a member of an object. */
void reader_place(const struct reader *reader, const struct json *value, const char *member);

#endif
