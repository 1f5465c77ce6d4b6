/* cbor: see the header. */
#include "base/coding/cbor.h"

enum major_type { UNSIGNED, NEGATIVE, OCTETS, TEXT, ARRAY, MAP, TAG, SIMPLE };
enum { SHORT_MOST = 23, LONG_1 = 24, LONG_8 = 27, SIMPLE_FALSE = 20, SIMPLE_NULL = 22 };

struct head {
    enum major_type major;
    uint64_t value;
};

static unsigned take_byte(struct bytes *rest)
{
    unsigned byte = (unsigned char)*rest->data;
    *rest = (struct bytes){rest->data + 1, rest->size - 1};
    return byte;
}

/* The value of a head in 1, 2, 4 or 8 bytes is longer than the form before it could hold. */
static bool is_shortest(uint64_t value, size_t size)
{
    return value > (size == 1 ? SHORT_MOST : UINT64_MAX >> (64 - 4 * size));
}

static bool take_head(struct bytes *rest, struct head *head_r)
{
    if (!rest->size)
        return false;
    unsigned byte = take_byte(rest), more = byte & 0x1f;
    *head_r = (struct head){.major = (enum major_type)(byte >> 5), .value = more};
    if (more <= SHORT_MOST)
        return true;
    size_t size = more <= LONG_8 ? (size_t)1 << (more - LONG_1) : 0;
    if (!size || rest->size < size)
        return false;
    head_r->value = 0;
    for (size_t i = 0; i < size; i++)
        head_r->value = head_r->value << 8 | take_byte(rest);
    return is_shortest(head_r->value, size);
}

static bool take_string(struct bytes *rest, enum major_type major, struct bytes *string_r)
{
    struct head head;
    if (!take_head(rest, &head) || head.major != major || head.value > rest->size)
        return false;
    *string_r = (struct bytes){rest->data, (size_t)head.value};
    *rest = (struct bytes){rest->data + head.value, rest->size - (size_t)head.value};
    return true;
}

bool cbor_take_integer(struct bytes *rest, int64_t *value_r)
{
    struct head head;
    if (!take_head(rest, &head) || head.major > NEGATIVE || head.value > INT64_MAX)
        return false;
    *value_r = head.major == NEGATIVE ? -1 - (int64_t)head.value : (int64_t)head.value;
    return true;
}

bool cbor_take_text(struct bytes *rest, struct bytes *text_r)
{
    return take_string(rest, TEXT, text_r);
}

bool cbor_take_octets(struct bytes *rest, struct bytes *octets_r)
{
    return take_string(rest, OCTETS, octets_r);
}

bool cbor_take_map(struct bytes *rest, uint64_t *count_r)
{
    struct head head;
    bool is_map = take_head(rest, &head) && head.major == MAP && head.value <= rest->size / 2;
    if (is_map)
        *count_r = head.value;
    return is_map;
}

/* The items of which the text still has to give some, for each array or map that is open. */
bool cbor_take_item(struct bytes *rest, struct bytes *item_r)
{
    const char *begin = rest->data;
    uint64_t wanted[CBOR_DEPTH_MOST + 1] = {1};
    struct head head;
    int depth = 0;
    while (depth || wanted[0]) {
        if (!wanted[depth]) {
            depth--;
            continue;
        }
        wanted[depth]--;
        if (!take_head(rest, &head) || head.major == TAG)
            return false;
        if (head.major == SIMPLE && (head.value < SIMPLE_FALSE || head.value > SIMPLE_NULL))
            return false;
        if (head.major == OCTETS || head.major == TEXT) {
            if (head.value > rest->size)
                return false;
            *rest = (struct bytes){rest->data + head.value, rest->size - (size_t)head.value};
        }
        if (head.major == ARRAY || head.major == MAP) {
            if (head.value > rest->size || depth == CBOR_DEPTH_MOST)
                return false;
            wanted[++depth] = head.major == MAP ? 2 * head.value : head.value;
        }
    }
    *item_r = (struct bytes){begin, (size_t)(rest->data - begin)};
    return true;
}
