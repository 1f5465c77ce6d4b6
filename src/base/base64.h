/* base64: bytes as text in the alphabet that is safe in addresses (RFC 4648, section 5), as JOSE and Web Push
 * write them. */
#ifndef STAMPD_BASE_BASE64_H
#define STAMPD_BASE_BASE64_H

#include "base/bytes.h"

/* Appends the text of the bytes, without padding. */
void base64_add(struct builder *builder, struct bytes bytes);
/* Reads a text that stands for exactly `size` bytes; padding may follow.  False: it does not, or is not how
 * base64_add writes them. */
MUST_USE bool base64_read(struct bytes text, void *bytes_r, size_t size);

#endif
