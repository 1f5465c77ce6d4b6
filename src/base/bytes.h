/* bytes: text as pointer and length, without an implied NUL.  It owns nothing. */
#ifndef STAMPD_BASE_BYTES_H
#define STAMPD_BASE_BYTES_H

#include "base/base.h"

#include <string.h>
#include <sys/types.h>

struct bytes {
    const char *data; /* NULL: no text at all, not the same as an empty one */
    size_t size;
};

#define BYTES(literal) ((struct bytes){("" literal), sizeof(literal) - 1})
#define NO_BYTES       ((struct bytes){NULL, 0})

static inline struct bytes bytes_of(const char *text)
{
    return (struct bytes){text, text ? strlen(text) : 0};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* The same with a word of a table, of which most differ in their first byte. */
static inline bool bytes_are(struct bytes text, const char *word)
{
    return text.size ? text.data[0] == word[0] && bytes_equal(text, bytes_of(word)) : !word[0];
}

static inline bool bytes_has_prefix(struct bytes text, struct bytes prefix)
{
    return text.size >= prefix.size && bytes_equal((struct bytes){text.data, prefix.size}, prefix);
}

/* Orders as unsigned bytes, shorter first on a tie: the order of PostgreSQL's collation "C". */
static inline int bytes_compare(struct bytes a, struct bytes b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Is it well-formed UTF-8 (no overlong form, no surrogate, at most U+10FFFF)?  NUL is allowed. */
bool bytes_is_utf8(struct bytes text);

/* Returns the text before the separator, or all, and advances `rest` past it. */
struct bytes bytes_cut(struct bytes *rest, char separator);
/* Returns the text without spaces and tabs at its ends. */
struct bytes bytes_trim(struct bytes text);

/* Reads a whole decimal integer (sign allowed); false when the text is not one or it does not fit. */
bool bytes_to_i64(struct bytes text, int64_t *value_r);

/* Writes the whole text to the file; on failure returns false and sets errno. */
MUST_USE bool bytes_write(int fd, struct bytes text);
/* The same from this place of the file on; its position stays. */
MUST_USE bool bytes_write_at(int fd, struct bytes text, int64_t at);
/* Reads so many bytes from this place on; its position stays.  Returns fewer at the end of the file, -1 on
 * failure, with errno. */
MUST_USE ssize_t bytes_read_at(int fd, unsigned char *data_r, size_t size, int64_t at);

/* A number as 8 bytes, the most significant first. */
void bytes_put_u64(unsigned char data_r[8], uint64_t number);
uint64_t bytes_get_u64(const unsigned char data[8]);

#endif
