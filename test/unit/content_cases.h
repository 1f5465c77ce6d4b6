/* content_cases: contents that conform to a schema and contents that do not. */
#ifndef STAMPD_TEST_CONTENT_CASES_H
#define STAMPD_TEST_CONTENT_CASES_H

#include <stddef.h>

enum { CONTENT_CASES_MOST = 16 };

/* Texts have ' in place of ". */
struct content_case {
    const char *schema;
    const char *good[CONTENT_CASES_MOST], *bad[CONTENT_CASES_MOST]; /* NULL ends them */
};

extern const struct content_case content_cases[];
extern const size_t content_case_count;

#endif
