/* content_format: RFC 3339 dates and times, RFC 5321 addresses of mail, RFC 3986 URIs, RFC 4122 UUIDs. */
#include "model/content/content_format.h"

#include <arpa/inet.h>

static bool content_format_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return content_format_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool content_format_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool content_format_is_among(char c, const char *signs)
{
    return c && strchr(signs, c);
}

/* --- dates and times ----------------------------------------------------------------------------- */

static struct bytes content_format_skip(struct bytes text, size_t size)
{
    return (struct bytes){text.data + size, text.size - size};
}

/* Reads `digits` digits at the beginning; false: there are none, or the number is out of range. */
static bool content_format_take_number(struct bytes *rest, size_t digits, int least, int most, int *number_r)
{
    if (rest->size < digits)
        return false;
    *number_r = 0;
    for (size_t i = 0; i < digits; i++) {
        if (!content_format_is_digit(rest->data[i]))
            return false;
        *number_r = *number_r * 10 + (rest->data[i] - '0');
    }
    *rest = content_format_skip(*rest, digits);
    return *number_r >= least && *number_r <= most;
}

static bool take_sign(struct bytes *rest, const char *signs, char *sign_r)
{
    if (!rest->size || !content_format_is_among(rest->data[0], signs))
        return false;
    *sign_r = rest->data[0];
    *rest = content_format_skip(*rest, 1);
    return true;
}

static bool take_date(struct bytes *rest)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    char sign;
    if (!content_format_take_number(rest, 4, 0, 9999, &year) || !take_sign(rest, "-", &sign) ||
        !content_format_take_number(rest, 2, 1, 12, &month) || !take_sign(rest, "-", &sign) ||
        !content_format_take_number(rest, 2, 1, 31, &day))
        return false;
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= days[month - 1] + (month == 2 && is_leap);
}

/* A second 60 is the last of a day in UTC. */
static bool take_time(struct bytes *rest)
{
    int hour, minute, second, away_hour = 0, away_minute = 0;
    char sign;
    if (!content_format_take_number(rest, 2, 0, 23, &hour) || !take_sign(rest, ":", &sign) ||
        !content_format_take_number(rest, 2, 0, 59, &minute) || !take_sign(rest, ":", &sign) ||
        !content_format_take_number(rest, 2, 0, 60, &second))
        return false;
    if (take_sign(rest, ".", &sign)) {
        size_t digits = 0;
        while (digits < rest->size && content_format_is_digit(rest->data[digits]))
            digits++;
        if (!digits)
            return false;
        *rest = content_format_skip(*rest, digits);
    }
    if (!take_sign(rest, "Zz+-", &sign))
        return false;
    if ((sign == '+' || sign == '-') &&
        (!content_format_take_number(rest, 2, 0, 23, &away_hour) || !take_sign(rest, ":", &(char){0}) ||
         !content_format_take_number(rest, 2, 0, 59, &away_minute)))
        return false;
    int away = (away_hour * 60 + away_minute) * (sign == '+' ? -1 : 1);
    int minute_of_day = (hour * 60 + minute + away + 2 * 1440) % 1440;
    return second < 60 || minute_of_day == 1439;
}

static bool is_date(struct bytes text)
{
    return take_date(&text) && !text.size;
}

static bool is_time(struct bytes text)
{
    return take_time(&text) && !text.size;
}

static bool is_date_time(struct bytes text)
{
    char sign;
    return take_date(&text) && take_sign(&text, "Tt", &sign) && take_time(&text) && !text.size;
}

/* --- addresses ----------------------------------------------------------------------------------- */

static bool is_address(int family, struct bytes text)
{
    char copy[64];
    unsigned char address[16];
    if (text.size >= sizeof copy || memchr(text.data, 0, text.size))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    return inet_pton(family, copy, address) == 1;
}

static bool is_ipv4(struct bytes text)
{
    return is_address(AF_INET, text);
}

static bool is_ipv6(struct bytes text)
{
    return is_address(AF_INET6, text);
}

/* Labels of letters, digits and hyphens, with dots between them. */
static bool is_domain(struct bytes text)
{
    if (!text.size || text.size > 253)
        return false;
    while (text.data) {
        struct bytes label = text;
        const char *dot = memchr(text.data, '.', text.size);
        if (dot)
            label.size = (size_t)(dot - text.data);
        text = dot ? content_format_skip(text, label.size + 1) : NO_BYTES;
        if (!label.size || label.size > 63 || label.data[0] == '-' || label.data[label.size - 1] == '-')
            return false;
        for (size_t i = 0; i < label.size; i++)
            if (!content_format_is_letter(label.data[i]) && !content_format_is_digit(label.data[i]) &&
                label.data[i] != '-')
                return false;
    }
    return true;
}

/* The part before the @: words with dots between them, or a quoted text. */
static bool is_local_part(struct bytes text)
{
    if (!text.size || text.size > 64)
        return false;
    if (text.data[0] == '"') {
        size_t i = 1;
        for (; i < text.size && text.data[i] != '"'; i++) {
            if (text.data[i] == '\\')
                i++;
            if (i >= text.size || text.data[i] < ' ' || text.data[i] > '~')
                return false;
        }
        return i + 1 == text.size;
    }
    for (size_t i = 0; i < text.size; i++) {
        bool is_dot = text.data[i] == '.';
        if (is_dot ? i == 0 || i + 1 == text.size || text.data[i - 1] == '.'
                   : !content_format_is_letter(text.data[i]) && !content_format_is_digit(text.data[i]) &&
                         !content_format_is_among(text.data[i], "!#$%&'*+-/=?^_`{|}~"))
            return false;
    }
    return true;
}

static bool is_email(struct bytes text)
{
    const char *at = memrchr(text.data, '@', text.size);
    if (!at)
        return false;
    struct bytes local = {text.data, (size_t)(at - text.data)};
    struct bytes domain = content_format_skip(text, local.size + 1);
    if (!is_local_part(local))
        return false;
    if (domain.size > 2 && domain.data[0] == '[' && domain.data[domain.size - 1] == ']') {
        struct bytes literal = {domain.data + 1, domain.size - 2};
        bool is_six = literal.size > 5 && memcmp(literal.data, "IPv6:", 5) == 0;
        return is_six ? is_ipv6(content_format_skip(literal, 5)) : is_ipv4(literal);
    }
    return is_domain(domain);
}

/* --- URIs and UUIDs ------------------------------------------------------------------------------ */

/* Characters of a part of a URI: unreserved, sub-delims, escapes and `more`. */
static bool has_only(struct bytes text, const char *more)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '%') {
            if (text.size - i < 3 || !is_hex(text.data[i + 1]) || !is_hex(text.data[i + 2]))
                return false;
            i += 2;
        } else if (!content_format_is_letter(c) && !content_format_is_digit(c) &&
                   !content_format_is_among(c, "-._~!$&'()*+,;=") && !content_format_is_among(c, more)) {
            return false;
        }
    }
    return true;
}

/* Text up to one of the signs, which stays in `rest`. */
static struct bytes cut_before(struct bytes *rest, const char *signs)
{
    struct bytes part = *rest;
    size_t i = 0;
    while (i < rest->size && !content_format_is_among(rest->data[i], signs))
        i++;
    part.size = i;
    *rest = content_format_skip(*rest, i);
    return part;
}

static bool is_port(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!content_format_is_digit(text.data[i]))
            return false;
    return true;
}

static bool is_authority(struct bytes text)
{
    const char *at = memchr(text.data, '@', text.size);
    if (at) {
        struct bytes user = {text.data, (size_t)(at - text.data)};
        if (!has_only(user, ":"))
            return false;
        text = content_format_skip(text, user.size + 1);
    }
    if (text.size && text.data[0] == '[') {
        const char *end = memchr(text.data, ']', text.size);
        if (!end || !is_ipv6((struct bytes){text.data + 1, (size_t)(end - text.data) - 1}))
            return false;
        text = content_format_skip(text, (size_t)(end - text.data) + 1);
        return !text.size || (text.data[0] == ':' && is_port(content_format_skip(text, 1)));
    }
    struct bytes host = cut_before(&text, ":");
    return has_only(host, "") && (!text.size || is_port(content_format_skip(text, 1)));
}

static bool is_uri(struct bytes text)
{
    struct bytes scheme = cut_before(&text, ":/?#");
    if (!scheme.size || !content_format_is_letter(scheme.data[0]) || !text.size || text.data[0] != ':')
        return false;
    for (size_t i = 0; i < scheme.size; i++)
        if (!content_format_is_letter(scheme.data[i]) && !content_format_is_digit(scheme.data[i]) &&
            !content_format_is_among(scheme.data[i], "+-."))
            return false;
    text = content_format_skip(text, 1);
    if (text.size >= 2 && memcmp(text.data, "//", 2) == 0) {
        text = content_format_skip(text, 2);
        if (!is_authority(cut_before(&text, "/?#")))
            return false;
    }
    if (!has_only(cut_before(&text, "?#"), ":@/"))
        return false;
    if (text.size && text.data[0] == '?') {
        text = content_format_skip(text, 1);
        if (!has_only(cut_before(&text, "#"), ":@/?"))
            return false;
    }
    return !text.size || has_only(content_format_skip(text, 1), ":@/?");
}

static bool is_uuid(struct bytes text)
{
    if (text.size != 36)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_hyphen ? text.data[i] != '-' : !is_hex(text.data[i]))
            return false;
    }
    return true;
}

content_format *content_format_find(struct bytes name)
{
    static const struct {
        const char *name;
        content_format *check;
    } all[] = {{"date-time", is_date_time}, {"date", is_date}, {"time", is_time},
               {"email", is_email},         {"uri", is_uri},   {"uuid", is_uuid},
               {"ipv4", is_ipv4},           {"ipv6", is_ipv6}};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (bytes_equal(name, bytes_of(all[i].name)))
            return all[i].check;
    return NULL;
}
