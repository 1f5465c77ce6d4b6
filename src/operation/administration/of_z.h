/* of_z: how the operations of the namespace z that are about another namespace begin (ns, resource). */
#ifndef STAMPD_OPERATION_ADMINISTRATION_OF_Z_H
#define STAMPD_OPERATION_ADMINISTRATION_OF_Z_H

#include "model/document/document.h"
#include "operation/reader.h"

/* Checks that the call goes to z.  `elsewhere`: the sentence that refuses another namespace. */
MUST_USE enum fault of_z_check_place(const struct reader *reader, const char *elsewhere);
/* The same, and that `param` has one member, one of `members`, separated by blanks.
 * `elsewhere`: the sentence that refuses another namespace; `expected`: the one that refuses another param.
 */
MUST_USE enum fault of_z_check(const struct reader *reader, const char *members, const char *elsewhere,
                               const char *expected);
/* The code of a namespace in a member of `object`. */
MUST_USE enum fault of_z_read_code(const struct reader *reader, const struct json *object, const char *member,
                                   struct bytes *code_r);
/* The content of a singleton that is not raw, of a document of z; NO_BYTES: there is none. */
struct bytes of_z_content(const struct document *document, struct bytes item_class);
/* FAULT_NNAMESPACE, recorded in the reply. */
enum fault of_z_refuse_absence(const struct reader *reader, struct bytes code);

#endif
