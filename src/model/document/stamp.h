/* stamp: date and time as the readable number yymmddhhmmssmmm, UTC, 2000 to 2099 (protocol.md, "Documents").
 * It sorts as time and fits a JavaScript number.  Pure: the present comes from base/clock. */
#ifndef STAMPD_MODEL_DOCUMENT_STAMP_H
#define STAMPD_MODEL_DOCUMENT_STAMP_H

#include "base/base.h"
#include "base/bytes.h"

#define STAMP_MIN    INT64_C(101000000000)    /* 2000-01-01 00:00:00.000: 000101000000000 */
#define STAMP_MAX    INT64_C(991231235959999) /* 2099-12-31 23:59:59.999 */
#define STAMP_DIGITS 15

/* Milliseconds since 1970 to stamp; a time outside the century is clamped. */
int64_t stamp_from_epoch_ms(int64_t epoch_ms);
/* Stamp to milliseconds since 1970; fields out of range are clamped (day 31 of February: its last day). */
int64_t stamp_to_epoch_ms(int64_t stamp);
/* Is every field of the number a date and time of the century? */
bool stamp_is_valid(int64_t stamp);
/* The stamp `ms` milliseconds later (or earlier), clamped to the century. */
int64_t stamp_add_ms(int64_t stamp, int64_t ms);
/* The smallest valid stamp above `stamp`; STAMP_MAX stays. */
int64_t stamp_next(int64_t stamp);
/* Reads exactly 15 digits; false when the text is not a valid stamp. */
bool stamp_from_text(struct bytes text, int64_t *stamp_r);
/* Writes 15 digits and a NUL. */
void stamp_to_text(int64_t stamp, char text[STAMP_DIGITS + 1]);
/* The present. */
int64_t stamp_now(void);

#endif
