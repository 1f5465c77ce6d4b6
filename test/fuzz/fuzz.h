/* fuzz: what a fuzz target gives to libFuzzer, or to replay.c in its stead. */
#ifndef STAMPD_TEST_FUZZ_H
#define STAMPD_TEST_FUZZ_H

#include <string.h>

#include "base/bytes.h"

/* Folder of the target's inputs in test/fuzz/corpus. */
extern const char fuzz_target[];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Divides an input into its first line, without the end of the line, and the rest; false: it has one line. */
static inline bool fuzz_divide(const uint8_t *data, size_t size, struct bytes *line_r, struct bytes *rest_r)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    if (!end)
        return false;
    *line_r = (struct bytes){(const char *)data, (size_t)(end - data)};
    *rest_r = (struct bytes){(const char *)end + 1, size - line_r->size - 1};
    return true;
}

#endif
