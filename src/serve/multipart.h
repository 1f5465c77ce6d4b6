/* multipart: the parts of a body of type multipart/form-data (RFC 7578), one after the other.
 *
 * Written here because no library of the distribution that is kept up reads a body that is already in memory
 * (those for mail accept far more than a form may be; those of web servers come with the server).  It is
 * strict: what two readers could take for different parts is refused.  Nothing is copied but names with a
 * backslash: parts are slices of the body, which must live as long.  Time and memory are proportional to the
 * body. */
#ifndef STAMPD_SERVE_MULTIPART_H
#define STAMPD_SERVE_MULTIPART_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"

enum { PART_HEAD_MAX = 8192 /* bytes of a part's header fields */ };

struct part {
    struct bytes name;      /* UTF-8 without NUL */
    struct bytes file_name; /* the same; NO_BYTES: no file.  As the client says it: no path to be trusted */
    struct bytes type;      /* Content-Type, visible ASCII and blanks; NO_BYTES: none */
    struct bytes content;
};

/* Where the reading stands. */
struct multipart {
    struct arena *arena;
    struct bytes delimiter; /* CRLF, two dashes, the boundary */
    struct bytes rest;      /* behind the last delimiter that was read */
};

/* Begins with what follows "multipart/form-data;" in the content type and the body, up to behind its first
 * delimiter.  FAULT_ATYPE: there is no boundary of 1 to 70 legal characters.  FAULT_ABODY, FAULT_AARG: the
 * body does not begin with it.  On a fault `what_r` says more, in static words. */
MUST_USE enum fault multipart_open(struct arena *arena, struct bytes parameters, struct bytes body,
                                   struct multipart *multipart_r, const char **what_r);
/* The next part; is_there_r false: the end, with nothing behind it.  FAULT_ABODY: cut off.  FAULT_ALIMIT: a
 * head of more than PART_HEAD_MAX bytes.  FAULT_AUTF8: a name.  FAULT_ATYPE: a transfer encoding other than
 * 7bit, 8bit and binary.  FAULT_AARG: all else that is no form. */
MUST_USE enum fault multipart_next(struct multipart *multipart, struct part *part_r, bool *is_there_r,
                                   const char **what_r);

#endif
