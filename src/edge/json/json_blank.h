/* json_blank: the blanks of JSON, for readers of a text whose end is known. */
#ifndef STAMPD_EDGE_JSON_JSON_BLANK_H
#define STAMPD_EDGE_JSON_JSON_BLANK_H

#include "base/base.h"

static inline bool json_blank_is(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* The first byte at or after `at` that is none; the text must end with one. */
static inline const char *json_blank_skip(const char *at)
{
    while ((unsigned char)*at <= ' ' && json_blank_is(*at))
        at++;
    return at;
}

#endif
