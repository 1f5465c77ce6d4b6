/* letter: see the header. */
#include "model/account/letter.h"

#include <time.h>

/* --- kinds and templates --- */

static const char *const words[] = {
    [LETTER_CONFIRM] = "confirm", [LETTER_RESET] = "reset",   [LETTER_REGISTER] = "register",
    [LETTER_LOGIN] = "login",     [LETTER_EXISTS] = "exists", [LETTER_CHANGED] = "changed"};

#define HELLO  "Hello {name},\n\n"
#define IGNORE "\n\nIf you did not request this, ignore this mail: nothing changes.\n"

static const struct letter_template standard[] = {
    [LETTER_CONFIRM] = {.subject = BYTES("Confirm your address for {site}"),
                        .text =
                            BYTES(HELLO "with this link you confirm that this mail address belongs to your "
                                        "account at {site}. It is valid for 48 hours and works once:\n\n"
                                        "{link}" IGNORE)},
    [LETTER_RESET] = {.subject = BYTES("A new password for {site}"),
                      .text = BYTES(HELLO "with this link you set a new password for your account at {site}. "
                                          "It is valid for one hour and works once:\n\n"
                                          "{link}" IGNORE)},
    [LETTER_REGISTER] = {.subject = BYTES("Your registration at {site}"),
                         .text = BYTES("Hello,\n\nwith this link you finish your registration at {site}. "
                                       "It is valid for 48 hours and works once:\n\n"
                                       "{link}" IGNORE)},
    [LETTER_LOGIN] = {.subject = BYTES("Sign in to {site}"),
                      .text = BYTES(HELLO "with this link you sign in to your account at {site}. It is valid "
                                          "for 15 minutes and works once:\n\n"
                                          "{link}" IGNORE)},
    [LETTER_EXISTS] = {.subject = BYTES("Your registration at {site}"),
                       .text =
                           BYTES("Hello,\n\nthis mail address was entered for a registration at {site}. It "
                                 "has an account there already: log in, or request a new password." IGNORE)},
    [LETTER_CHANGED] = {.subject = BYTES("Your address at {site} was changed"),
                        .text =
                            BYTES(HELLO "the mail address of your account at {site} was changed: mails no "
                                        "longer come to this one.\n\nIf it was not you, contact {site}.\n")},
};

const char *letter_word(enum letter_kind kind)
{
    return words[kind];
}

bool letter_find_kind(struct bytes word, enum letter_kind *kind_r)
{
    for (int kind = 0; kind < LETTER_KINDS; kind++)
        if (bytes_equal(word, bytes_of(words[kind]))) {
            *kind_r = (enum letter_kind)kind;
            return true;
        }
    return false;
}

static bool letter_read_part(const struct json *value, size_t most, struct bytes *part_r)
{
    if (value->kind != JSON_STRING || !value->value.size || value->value.size > most)
        return false;
    *part_r = value->value;
    return !memchr(value->value.data, '\0', value->value.size);
}

static bool is_printable(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] <= ' ' || text.data[i] == 0x7f)
            return false;
    return true;
}

static bool read_template(const struct json *value, struct letter_template *template)
{
    if (value->kind != JSON_OBJECT)
        return false;
    for (const struct json *part = value->first; part; part = part->next) {
        bool is_read = false;
        if (bytes_equal(part->name, BYTES("subject")))
            is_read = letter_read_part(part, LETTER_SUBJECT_MOST, &template->subject);
        else if (bytes_equal(part->name, BYTES("text")))
            is_read = letter_read_part(part, LETTER_TEXT_MOST, &template->text);
        else if (bytes_equal(part->name, BYTES("link")))
            is_read =
                letter_read_part(part, LETTER_LINK_MOST, &template->link) && is_printable(template->link);
        if (!is_read)
            return false;
    }
    return true;
}

bool letter_read_templates(struct arena *arena, struct bytes text,
                           const struct letter_templates **templates_r)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2, .nodes = 64};
    struct letter_templates *templates = ARENA_NEW(arena, struct letter_templates);
    struct json *root;
    struct json_problem problem;
    enum letter_kind kind;
    if (json_read(arena, text, &limits, &root, &problem) || root->kind != JSON_OBJECT)
        return false;
    for (const struct json *member = root->first; member; member = member->next) {
        if (bytes_equal(member->name, BYTES("from"))) {
            if (!letter_read_part(member, LETTER_ADDRESS_MOST, &templates->from) ||
                !letter_is_address(templates->from))
                return false;
        } else if (!letter_find_kind(member->name, &kind) ||
                   !read_template(member, &templates->kinds[kind])) {
            return false;
        }
    }
    *templates_r = templates;
    return true;
}

/* --- addresses and names --- */

static bool is_letter_or_digit(char byte)
{
    char letter = (char)(byte | 0x20);
    return (byte >= '0' && byte <= '9') || (letter >= 'a' && letter <= 'z');
}

/* Words of the characters in `more`, letters and digits, of at most `most`, with one "." between two. */
static bool is_dotted(struct bytes text, const char *more, size_t most)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        bool is_dot = byte == '.';
        if (is_dot ? !size : !is_letter_or_digit(byte) && (!byte || !strchr(more, byte)))
            return false;
        size = is_dot ? 0 : size + 1;
        if (size > most)
            return false;
    }
    return size > 0;
}

bool letter_is_address(struct bytes address)
{
    const char *at = address.size ? memchr(address.data, '@', address.size) : NULL;
    if (!at || address.size > LETTER_ADDRESS_MOST)
        return false;
    struct bytes local = {address.data, (size_t)(at - address.data)};
    struct bytes host = {at + 1, address.size - local.size - 1};
    return local.size <= 64 && is_dotted(local, "!#$%&'*+-/=?^_`{|}~", 64) && is_dotted(host, "-", 63) &&
           *host.data != '-';
}

struct bytes letter_tame(struct arena *arena, struct bytes name)
{
    char *tame = arena_copy(arena, name.data, name.size);
    for (size_t i = 0; i < name.size; i++)
        if (!is_letter_or_digit(tame[i]) && tame[i] != '-' && tame[i] != '_')
            tame[i] = ' ';
    return (struct bytes){tame, name.size};
}

/* --- texts --- */

static void add_link(struct builder *text, const struct letter *letter, struct bytes link)
{
    static const char place[] = "{token}";
    const char *at = link.size ? memmem(link.data, link.size, place, sizeof place - 1) : NULL;
    size_t before = at ? (size_t)(at - link.data) : link.size;
    builder_add(text, link.data, before);
    if (link.size && !at)
        builder_add_text(text, "#ticket=");
    builder_add_bytes(text, letter->token);
    if (at)
        builder_add(text, at + sizeof place - 1, link.size - before - (sizeof place - 1));
}

/* What is inserted is not read again: a name with "{link}" stays as it is. */
static void letter_fill(struct builder *text, struct bytes template, const struct letter *letter,
                        struct bytes link)
{
    static const struct bytes places[] = {BYTES("{link}"), BYTES("{name}"), BYTES("{site}")};
    for (size_t i = 0; i < template.size;) {
        struct bytes rest = {template.data + i, template.size - i};
        size_t place = 0;
        while (place < COUNT_OF(places) && (rest.size < places[place].size ||
                                            memcmp(rest.data, places[place].data, places[place].size) != 0))
            place++;
        if (place == COUNT_OF(places)) {
            builder_add(text, rest.data, 1);
            i++;
            continue;
        }
        i += places[place].size;
        if (place == 0)
            add_link(text, letter, link);
        else
            builder_add_bytes(text, place == 1 ? letter->name : letter->site);
    }
}

/* --- header --- */

static bool letter_is_plain(struct bytes given)
{
    for (size_t i = 0; i < given.size; i++)
        if (given.data[i] < ' ' || given.data[i] > '~' || strchr("=?\"\\<>", given.data[i]))
            return false;
    return given.size <= 60;
}

static void add_base64(struct builder *text, const unsigned char *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16 | (i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0) |
                        (i + 2 < size ? data[i + 2] : 0);
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        i + 1 < size ? digits[bits >> 6 & 63] : '=', i + 2 < size ? digits[bits & 63] : '='};
        builder_add(text, four, sizeof four);
    }
}

/* RFC 2047: encoded words of whole characters, each on a line of its own; `quote` is put around a plain
 * text. */
static void letter_add_words(struct builder *text, struct bytes given, const char *quote)
{
    enum { WORD_BYTES = 39 };
    if (letter_is_plain(given)) {
        builder_printf(text, "%s%.*s%s", quote, (int)given.size, given.data, quote);
        return;
    }
    for (size_t i = 0; i < given.size;) {
        size_t size = given.size - i < WORD_BYTES ? given.size - i : WORD_BYTES;
        while (i + size < given.size && size > 1 && ((unsigned char)given.data[i + size] & 0xc0) == 0x80)
            size--;
        builder_printf(text, "%s=?UTF-8?B?", i ? "\r\n " : "");
        add_base64(text, (const unsigned char *)given.data + i, size);
        builder_add_text(text, "?=");
        i += size;
    }
}

void letter_add_date(struct builder *text, int64_t now_ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    builder_printf(text, "Date: %s, %02d %s %04d %02d:%02d:%02d +0000\r\n", days[parts.tm_wday],
                   parts.tm_mday, months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                   parts.tm_sec);
}

static void add_head(struct builder *text, const struct letter *letter, struct bytes subject)
{
    const char *at = memchr(letter->from.data, '@', letter->from.size);
    struct bytes host = {at + 1, letter->from.size - (size_t)(at + 1 - letter->from.data)};
    builder_add_text(text, "From: ");
    if (letter->site.size) {
        letter_add_words(text, letter->site, "\"");
        builder_add_text(text, "\r\n ");
    }
    builder_printf(text, "<%.*s>\r\nTo: <%.*s>\r\n", (int)letter->from.size, letter->from.data,
                   (int)letter->to.size, letter->to.data);
    letter_add_date(text, letter->now_ms);
    builder_printf(text, "Message-ID: <%.*s@%.*s>\r\nSubject: ", (int)letter->id.size, letter->id.data,
                   (int)host.size, host.data);
    letter_add_words(text, subject, "");
    builder_add_text(text, "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
                           "Content-Transfer-Encoding: quoted-printable\r\n"
                           "Auto-Submitted: auto-generated\r\n\r\n");
}

/* --- body: quoted-printable (RFC 2045) --- */

static void add_quoted(struct builder *text, struct bytes body)
{
    enum { LINE_BYTES = 72 };
    size_t column = 0;
    for (size_t i = 0; i < body.size; i++) {
        unsigned char byte = (unsigned char)body.data[i];
        bool is_last = i + 1 == body.size || body.data[i + 1] == '\n';
        if (byte == '\n') {
            builder_add_text(text, "\r\n");
            column = 0;
            continue;
        }
        if (column >= LINE_BYTES) {
            builder_add_text(text, "=\r\n");
            column = 0;
        }
        bool is_literal = byte > ' ' ? byte < 0x7f && byte != '=' : byte == ' ' && !is_last;
        if (is_literal)
            builder_add(text, &byte, 1);
        else
            builder_printf(text, "=%02X", byte);
        column += is_literal ? 1 : 3;
    }
    builder_add_text(text, "\r\n");
}

void letter_write(struct builder *text, const struct letter *letter)
{
    struct letter_template template = standard[letter->kind];
    const struct letter_template *own = letter->templates ? &letter->templates->kinds[letter->kind] : NULL;
    struct builder part = {0};
    if (own && own->subject.data)
        template.subject = own->subject;
    if (own && own->text.data)
        template.text = own->text;
    if (own)
        template.link = own->link;
    letter_fill(&part, template.subject, &(struct letter){.name = letter->name, .site = letter->site},
                NO_BYTES);
    for (size_t i = 0; i < part.size; i++)
        if ((unsigned char)part.data[i] < ' ')
            part.data[i] = ' ';
    add_head(text, letter, builder_bytes(&part));
    part.size = 0;
    letter_fill(&part, template.text, letter, template.link);
    add_quoted(text, builder_bytes(&part));
    explicit_bzero(part.data, part.capacity);
    builder_free(&part);
}
