/* base64: base64url, the URL-safe alphabet (RFC 4648, section 5) that JOSE and Web Push use; and the standard
 * one (section 4), of CouchDB and of Basic authentication. */
#ifndef STAMPD_BASE_CODING_BASE64_H
#define STAMPD_BASE_CODING_BASE64_H

#include "base/builder.h"

/* Appends the encoded bytes, without padding. */
void base64_add(struct builder *builder, struct bytes bytes);
/* Writes the same, BASE64_SIZE bytes at most; returns how many. */
#define BASE64_SIZE(size) ((size) / 3 * 4 + 4)
size_t base64_write(struct bytes bytes, char *text_r);
/* The same in the standard alphabet, with padding. */
void base64_add_standard(struct builder *builder, struct bytes bytes);
/* Decodes a text of exactly `size` bytes; padding may follow.  False: another size, or not in the form that
 * base64_add writes. */
MUST_USE bool base64_read(struct bytes text, void *bytes_r, size_t size);
/* The same without padding. */
MUST_USE bool base64_read_strict(struct bytes text, void *bytes_r, size_t size);
/* The same in the standard alphabet; padding may follow. */
MUST_USE bool base64_read_standard(struct bytes text, void *bytes_r, size_t size);
/* How many bytes a text in either alphabet stands for. */
size_t base64_size(struct bytes text);

#endif
