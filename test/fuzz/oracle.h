/* oracle: RFC 8259 a second time, written plainly and slowly, to compare json_read with. */
#ifndef STAMPD_TEST_ORACLE_H
#define STAMPD_TEST_ORACLE_H

#include "base/bytes.h"

/* Is this one strict JSON text: UTF-8, no byte order mark, no U+0000, no lone surrogate, no two members of
 * one name, arrays and objects at most `depth` deep? */
bool oracle_accepts(struct bytes text, int depth);

#endif
