/* reader: typed, bounds-checked reading of JSON arguments.  Each function records FAULT_AARG or FAULT_ALIMIT
 * in the reply, with the member's name (and the limit and the value), and returns it. */
#ifndef STAMPD_OPERATION_READER_H
#define STAMPD_OPERATION_READER_H

#include "base/settings.h"
#include "document/documents.h"
#include "operation/call.h"

struct reader {
    const struct settings *settings;
    struct call *call;
    struct reply *reply;
};

/* An array member; `most` elements, else FAULT_ALIMIT under the name of the setting `limit`.  Absent:
 * FAULT_AARG. */
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
/* A document's name of the values of its members c and id; NULL: absent. */
MUST_USE enum fault reader_take_name(const struct reader *reader, const struct json *class,
                                     const struct json *id, struct name *name_r);
/* Members c and id: the name of a document. */
MUST_USE enum fault reader_name(const struct reader *reader, const struct json *object, struct name *name_r);

/* Is `name` free of empty, too long and NUL: ids and keys.  `member` names it in the fault. */
MUST_USE enum fault reader_check_length(const struct reader *reader, const char *member, struct bytes name);
/* Over a limit: the setting's name, its value, and what came. */
enum fault reader_over(const struct reader *reader, const char *limit, int64_t most, int64_t value);
/* A share is used up, of a client or a namespace: the setting's name and its value.  Another time it may be
 * free. */
enum fault reader_busy(const struct reader *reader, const char *limit, int64_t most);
enum fault reader_wrong(const struct reader *reader, const char *member, const char *expected);

#endif
