/* multipart: reads the parts of a multipart/form-data body (RFC 7578), one after the other.
 *
 * Written here because no maintained library of the distribution parses a body that is already in memory
 * (mail libraries accept far more than a form; those of web servers come with the server).  The parser is
 * strict: it refuses bodies that two parsers could split differently.  Only names with a backslash are
 * copied; parts are slices of the body, which must live as long.  Time and memory are proportional to the
 * body. */
#ifndef STAMPD_HTTP_MULTIPART_H
#define STAMPD_HTTP_MULTIPART_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"

enum { PART_HEAD_MAX = 8192 /* bytes of a part's header fields */ };

struct part {
    struct bytes name;      /* UTF-8 without NUL */
    struct bytes file_name; /* the same; NO_BYTES: no file.  Client's text: do not use it as a path */
    struct bytes type;      /* Content-Type, visible ASCII and blanks; NO_BYTES: none */
    struct bytes content;
};

/* State of the parser. */
struct multipart {
    struct arena *arena;
    struct bytes delimiter; /* CRLF, two dashes, the boundary */
    struct bytes rest;      /* after the last delimiter read */
};

/* Reads `parameters`, what follows "multipart/form-data;" in the content type, and the body through its first
 * delimiter.  FAULT_ATYPE: no boundary of 1 to 70 legal characters.  FAULT_ABODY, FAULT_AARG: the body does
 * not begin with it.  On a fault `what_r` is an explanation, a static text. */
MUST_USE enum fault multipart_open(struct arena *arena, struct bytes parameters, struct bytes body,
                                   struct multipart *multipart_r, const char **what_r);
/* The next part; is_there_r false: the end, with nothing after it.  FAULT_ABODY: cut off.  FAULT_ALIMIT: a
 * head of more than PART_HEAD_MAX bytes.  FAULT_AUTF8: a name.  FAULT_ATYPE: a transfer encoding other than
 * 7bit, 8bit and binary.  FAULT_AARG: anything else malformed. */
MUST_USE enum fault multipart_next(struct multipart *multipart, struct part *part_r, bool *is_there_r,
                                   const char **what_r);

#endif
