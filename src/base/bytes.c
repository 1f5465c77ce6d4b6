/* bytes: UTF-8 check, integers, writing to files. */
#include "base/bytes.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "base/coding/swar.h"

/* Length of the well-formed sequence at p (RFC 3629 table), 0 if malformed. */
static size_t utf8_sequence(const unsigned char *p, size_t left)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t length;
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        length = 2;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        length = 3;
        if (p[0] == 0xE0)
            low = 0xA0;
        else if (p[0] == 0xED)
            high = 0x9F; /* surrogates */
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        length = 4;
        if (p[0] == 0xF0)
            low = 0x90;
        else if (p[0] == 0xF4)
            high = 0x8F; /* above U+10FFFF */
    } else {
        return 0;
    }
    if (left < length || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (p[i] < 0x80 || p[i] > 0xBF)
            return 0;
    return length;
}

bool bytes_is_utf8(struct bytes text)
{
    const unsigned char *p = (const unsigned char *)text.data;
    size_t left = text.size;
    for (uint64_t words[4]; left >= sizeof words; p += sizeof words, left -= sizeof words) {
        memcpy(words, p, sizeof words); /* most texts are ASCII, or begin so */
        if ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u)
            break;
    }
    while (left) {
        uint64_t word;
        while (left >= sizeof word) { /* eight ASCII bytes at a time */
            memcpy(&word, p, sizeof word);
            if (word & 0x8080808080808080u)
                break;
            p += sizeof word;
            left -= sizeof word;
        }
        if (!left)
            break;
        size_t length = p[0] < 0x80 ? 1 : utf8_sequence(p, left);
        if (!length)
            return false;
        p += length;
        left -= length;
    }
    return true;
}

/* Nine to sixteen digits, as in stamps: the leading ones padded with zeros, and the last eight. */
static bool read_two_words(struct bytes text, int64_t *value_r)
{
    size_t first = text.size - 8, zeros = 8 - first;
    uint64_t high = swar_load(text.data) << 8 * zeros | SWAR_ONES * '0' >> (64 - 8 * zeros - 1) >> 1;
    uint64_t low = swar_load(text.data + first);
    if (swar_no_digits(high) | swar_no_digits(low))
        return false;
    *value_r = (int64_t)(swar_digits(high) * 100000000 + swar_digits(low));
    return true;
}

struct bytes bytes_cut(struct bytes *rest, char separator)
{
    const char *at = rest->size ? memchr(rest->data, separator, rest->size) : NULL;
    struct bytes piece = {rest->data, at ? (size_t)(at - rest->data) : rest->size};
    size_t taken = piece.size + (at ? 1 : 0);
    *rest = (struct bytes){taken ? rest->data + taken : rest->data, rest->size - taken};
    return piece;
}

struct bytes bytes_trim(struct bytes text)
{
    while (text.size && (*text.data == ' ' || *text.data == '\t'))
        text = (struct bytes){text.data + 1, text.size - 1};
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

bool bytes_to_i64(struct bytes text, int64_t *value_r)
{
    enum { SAFE_DIGITS = 18 }; /* never overflow */
    bool negative = text.size && text.data[0] == '-';
    size_t i = negative ? 1 : 0, safe_end = i + SAFE_DIGITS < text.size ? i + SAFE_DIGITS : text.size;
    if (i == text.size)
        return false;
    if (!negative && text.size > 8 && text.size <= 16)
        return read_two_words(text, value_r);
    int64_t value = 0; /* built as a negative number, whose range is one larger */
    for (; i < text.size; i++) {
        int digit = text.data[i] - '0';
        if (digit < 0 || digit > 9)
            return false;
        if (i < safe_end)
            value = value * 10 - digit;
        else if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *value_r = negative ? value : -value;
    return true;
}

bool bytes_write(int fd, struct bytes text)
{
    while (text.size) {
        ssize_t put = write(fd, text.data, text.size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        text.data += put;
        text.size -= (size_t)put;
    }
    return true;
}

bool bytes_write_at(int fd, struct bytes text, int64_t at)
{
    for (size_t done = 0; done < text.size;) {
        ssize_t size = pwrite(fd, text.data + done, text.size - done, (off_t)at + (off_t)done);
        if (size < 0 && errno != EINTR)
            return false;
        done += size > 0 ? (size_t)size : 0;
    }
    return true;
}

ssize_t bytes_read_at(int fd, unsigned char *data_r, size_t size, int64_t at)
{
    size_t done = 0;
    while (done < size) {
        ssize_t part = pread(fd, data_r + done, size - done, (off_t)at + (off_t)done);
        if (part == 0)
            break;
        if (part < 0 && errno != EINTR)
            return -1;
        done += part > 0 ? (size_t)part : 0;
    }
    return (ssize_t)done;
}

void bytes_put_u64(unsigned char data_r[8], uint64_t number)
{
    uint64_t wire = htobe64(number);
    memcpy(data_r, &wire, sizeof wire);
}

uint64_t bytes_get_u64(const unsigned char data[8])
{
    uint64_t wire;
    memcpy(&wire, data, sizeof wire);
    return be64toh(wire);
}
