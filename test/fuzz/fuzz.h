/* fuzz: what a fuzz target gives to libFuzzer, or to replay.c in its stead. */
#ifndef STAMPD_TEST_FUZZ_H
#define STAMPD_TEST_FUZZ_H

#include "base/base.h"

/* Folder of the target's inputs in test/fuzz/corpus. */
extern const char fuzz_target[];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
