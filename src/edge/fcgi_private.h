/* fcgi_private: the records of FastCGI, and what has come of the request being served. */
#ifndef STAMPD_EDGE_FCGI_PRIVATE_H
#define STAMPD_EDGE_FCGI_PRIVATE_H

#include "edge/fcgi.h"

enum { FCGI_VERSION = 1, FCGI_RESPONDER = 1, FCGI_KEEPS_CONNECTION = 1 };

enum fcgi_type {
    FCGI_BEGIN_REQUEST = 1,
    FCGI_ABORT_REQUEST = 2,
    FCGI_END_REQUEST = 3,
    FCGI_PARAMS = 4,
    FCGI_STDIN = 5,
    FCGI_STDOUT = 6,
    FCGI_GET_VALUES_RESULT = 10,
};

/* What each record begins with, as it is sent. */
struct fcgi_header {
    unsigned char version, type, id[2], size[2], padding, reserved;
};

/* State of the body. */
enum input { INPUT_OPEN, INPUT_WHOLE, INPUT_BROKEN };

enum { PARAMETERS_MOST = 64 /* our nginx sends fewer */ };

struct parameter {
    struct bytes name, value; /* a NUL follows the value */
};

/* The request being served: a process serves one at a time, so its connections share the memory. */
struct fcgi_input {
    int fd;
    int id; /* of the request */
    bool keeps_connection;
    enum input state;
    int64_t timeout_ms, until_ms; /* until_ms: when waiting ends; 0: it has not begun */
    char *room;                   /* what was received; the parameters lie before `kept` until the answer */
    size_t capacity, kept;
    size_t next, end;        /* of what was received and not looked at */
    size_t content, padding; /* of the record of the body that is being read, what is left of them */
    struct parameter parameters[PARAMETERS_MOST];
    uint16_t tags[PARAMETERS_MOST]; /* of their names */
    uint64_t bits;                  /* of their tags */
    int parameter_count;
};

/* Reads the head of a request from `fd`, which is readable.  False: it did not come within the timeout, or is
 * not that of a responder's request; the connection is then of no use. */
MUST_USE bool fcgi_input_begin(struct fcgi_input *input, int fd);
/* Reads the next bytes of the body.  Fewer than `size`: `state` says whether this is its end. */
size_t fcgi_input_read(struct fcgi_input *input, char *room, size_t size);
/* NO_BYTES: there is none of that name. */
struct bytes fcgi_input_parameter(const struct fcgi_input *input, const char *name);
void fcgi_input_free(struct fcgi_input *input);

#endif
