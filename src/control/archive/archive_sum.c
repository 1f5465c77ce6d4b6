/* archive_sum: additions modulo 2^256. */
#include "control/archive/archive_sum.h"

#include <endian.h>

#include "base/coding/hex.h"

static void add_limbs(uint64_t *limbs, const uint64_t *others)
{
    unsigned carry = 0;
    for (int i = 0; i < ARCHIVE_SUM_LIMBS; i++) {
        uint64_t with = limbs[i] + others[i], whole = with + carry;
        carry = (with < others[i]) | (whole < with);
        limbs[i] = whole;
    }
}

void archive_sum_add(struct archive_sum *sum, struct digest *digest, struct bytes line)
{
    unsigned char bytes[CRYPTO_SHA256];
    uint64_t limbs[ARCHIVE_SUM_LIMBS];
    digest_add(digest, line);
    digest_end(digest, bytes);
    memcpy(limbs, bytes, sizeof limbs);
    for (int i = 0; i < ARCHIVE_SUM_LIMBS; i++)
        limbs[i] = le64toh(limbs[i]);
    add_limbs(sum->limbs, limbs);
}

bool archive_sum_equals(const struct archive_sum *sum, const struct archive_sum *other)
{
    return sum->documents == other->documents && sum->deleted == other->deleted &&
           sum->items == other->items && sum->highest == other->highest &&
           memcmp(sum->limbs, other->limbs, sizeof sum->limbs) == 0;
}

void archive_sum_write(const struct archive_sum *sum, struct builder *json)
{
    unsigned char bytes[CRYPTO_SHA256];
    char hex[ARCHIVE_SUM_HEX + 1];
    for (int i = 0; i < ARCHIVE_SUM_LIMBS; i++) {
        uint64_t limb = htole64(sum->limbs[i]);
        memcpy(bytes + i * 8, &limb, sizeof limb);
    }
    hex_write(bytes, sizeof bytes, hex);
    hex[ARCHIVE_SUM_HEX] = '\0';
    builder_printf(json, "\"documents\":%lld,\"deleted\":%lld,\"items\":%lld,\"highest\":%lld,\"sum\":\"%s\"",
                   (long long)sum->documents, (long long)sum->deleted, (long long)sum->items,
                   (long long)sum->highest, hex);
}

static bool read_hex(struct bytes hex, unsigned char bytes_r[CRYPTO_SHA256])
{
    for (size_t i = 0; i < CRYPTO_SHA256; i++) {
        int byte = hex_byte(hex.data + i * 2);
        if (byte < 0)
            return false;
        bytes_r[i] = (unsigned char)byte;
    }
    return true;
}

static bool archive_sum_read_number(const struct json *object, const char *name, int64_t *number_r)
{
    const struct json *member = json_member(object, name);
    return member && json_is_i64(member, number_r) && *number_r >= 0;
}

bool archive_sum_read(const struct json *object, struct archive_sum *sum_r)
{
    unsigned char bytes[CRYPTO_SHA256];
    const struct json *sum = json_member(object, "sum");
    *sum_r = (struct archive_sum){0};
    if (!sum || sum->kind != JSON_STRING || sum->value.size != ARCHIVE_SUM_HEX ||
        !read_hex(sum->value, bytes) || !archive_sum_read_number(object, "documents", &sum_r->documents) ||
        !archive_sum_read_number(object, "deleted", &sum_r->deleted) ||
        !archive_sum_read_number(object, "items", &sum_r->items) ||
        !archive_sum_read_number(object, "highest", &sum_r->highest))
        return false;
    memcpy(sum_r->limbs, bytes, sizeof sum_r->limbs);
    for (int i = 0; i < ARCHIVE_SUM_LIMBS; i++)
        sum_r->limbs[i] = le64toh(sum_r->limbs[i]);
    return true;
}
