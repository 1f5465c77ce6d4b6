/* resp_scan: pages of keys. */
#include "journal/resp/resp_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "edge/crypto/crypto.h"

enum {
    COUNT_STANDARD = 10,
    COUNT_MOST = 1000,
    PASSED_MOST = 2000,  /* keys that a page passes */
    PASSED_STEPS = 25,   /* of journal_turns.h, for each of them */
    MATCH_STEPS = 25000, /* a page passes no other key after so many bytes were compared */
    KEY_STEPS = 25000,   /* a key that takes more of them does not match */
    PAGE_BITS = 16
};

/* --- cursors --- */

struct scan_place {
    uint64_t scan;          /* random, of 36 bits; 0: none */
    uint64_t used;          /* when it was used last */
    uint16_t page;          /* the last one */
    struct builder last[2]; /* of the pages with even and odd numbers */
};

struct resp_cursors {
    uint64_t uses;
    struct scan_place *places[JOURNAL_KEYS_MOST]; /* of each key of the file, once it scans */
};

struct resp_cursors *resp_scan_open(void)
{
    struct resp_cursors *cursors = calloc(1, sizeof *cursors);
    if (!cursors)
        log_fatal("out of memory making room for cursors");
    return cursors;
}

void resp_scan_forget(struct resp_cursors *cursors)
{
    for (size_t i = 0; i < JOURNAL_KEYS_MOST; i++) {
        for (size_t k = 0; cursors->places[i] && k < RESP_CURSORS_MOST; k++) {
            builder_free(&cursors->places[i][k].last[0]);
            builder_free(&cursors->places[i][k].last[1]);
        }
        free(cursors->places[i]);
        cursors->places[i] = NULL;
    }
}

void resp_scan_close(struct resp_cursors *cursors)
{
    if (cursors)
        resp_scan_forget(cursors);
    free(cursors);
}

static struct scan_place *find_place(struct resp_cursors *cursors, size_t owner, uint64_t cursor)
{
    struct scan_place *places = cursors->places[owner];
    for (size_t i = 0; places && i < RESP_CURSORS_MOST; i++)
        if (places[i].scan && places[i].scan == cursor >> PAGE_BITS)
            return &places[i];
    return NULL;
}

/* In place of the scan that was used longest ago. */
static struct scan_place *begin_scan(struct resp_cursors *cursors, size_t owner)
{
    uint64_t scan;
    if (!cursors->places[owner])
        cursors->places[owner] = calloc(RESP_CURSORS_MOST, sizeof *cursors->places[owner]);
    if (!cursors->places[owner])
        log_fatal("out of memory making room for cursors");
    struct scan_place *place = cursors->places[owner];
    for (size_t i = 1; i < RESP_CURSORS_MOST; i++)
        if (cursors->places[owner][i].used < place->used)
            place = &cursors->places[owner][i];
    crypto_random(&scan, sizeof scan);
    place->scan = scan >> 28 | 1;
    place->page = 0;
    return place;
}

uint64_t resp_scan_note(struct resp_cursors *cursors, size_t owner, uint64_t former, struct bytes last)
{
    struct scan_place *place = former ? find_place(cursors, owner, former) : NULL;
    uint16_t page = (uint16_t)(former + 1);
    if (!place)
        place = begin_scan(cursors, owner);
    else if ((uint16_t)(page - place->page) <= 1)
        place->page = page;
    else
        return former; /* its place has gone on meanwhile: the same page again */
    struct builder *text = &place->last[place->page % 2];
    text->size = 0;
    builder_add_bytes(text, last);
    place->used = ++cursors->uses;
    return place->scan << PAGE_BITS | place->page;
}

bool resp_scan_find(struct resp_cursors *cursors, size_t owner, uint64_t cursor, struct bytes *last_r)
{
    struct scan_place *place = find_place(cursors, owner, cursor);
    if (!place || (uint16_t)(place->page - (uint16_t)cursor) > 1)
        return false;
    place->used = ++cursors->uses;
    *last_r = builder_bytes(&place->last[cursor % 2]);
    return true;
}

/* --- pages --- */

struct resp_page {
    struct bytes pattern, prefix; /* NO_BYTES: of all keys */
    int64_t count;                /* keys that it has at most */
    bool is_of_none;              /* of another type than there is */
    uint64_t cursor;
    char after[RECORDS_KEY_MOST]; /* the key that it follows, or that was passed last */
    size_t after_size;
    struct builder keys;
    size_t found;
};

/* False: refused. */
static bool read_options(const struct journal_session *session, struct resp_page *page, struct builder *out)
{
    const char *refusal = NULL;
    for (size_t i = 2; i < resp_session_count(session) && !refusal; i += 2) {
        struct bytes word = resp_session_word(session, i);
        bool has_value = i + 1 < resp_session_count(session);
        struct bytes value = has_value ? resp_session_word(session, i + 1) : NO_BYTES;
        if (has_value && resp_is(word, "match"))
            page->pattern = value;
        else if (has_value && resp_is(word, "type"))
            page->is_of_none = !resp_is(value, "string");
        else if (!has_value || !resp_is(word, "count"))
            refusal = "ERR syntax error";
        else if (!resp_to_integer(value, &page->count))
            refusal = "ERR value is not an integer or out of range";
        else if (page->count < 1)
            refusal = "ERR syntax error";
    }
    if (page->pattern.size > RESP_GLOB_MOST)
        refusal = "ERR a pattern has at most 2048 bytes";
    if (page->count > COUNT_MOST)
        page->count = COUNT_MOST;
    if (refusal)
        resp_session_refuse(out, refusal);
    return !refusal;
}

/* False: refused. */
static bool take_cursor(const struct journal_session *session, struct resp_page *page, struct builder *out)
{
    struct bytes word = resp_session_word(session, 1), last = BYTES("");
    int64_t cursor;
    bool is_sound = resp_to_integer(word, &cursor) && cursor >= 0;
    if (is_sound && cursor &&
        !(session->cursors &&
          resp_scan_find(session->cursors, journal_keys_number(&session->caller), (uint64_t)cursor, &last)))
        is_sound = false;
    if (!is_sound) {
        resp_session_refuse(out, "ERR invalid cursor");
        return false;
    }
    page->cursor = (uint64_t)cursor;
    page->after_size = last.size;
    memcpy(page->after, last.data, last.size);
    return true;
}

/* Adds the key, if it matches. */
static void pass_key(struct journal_session *session, struct resp_page *page, struct bytes key,
                     int64_t *steps)
{
    int64_t left = KEY_STEPS;
    bool is_match = !page->pattern.data || resp_glob_matches(page->pattern, key, &left);
    *steps -= KEY_STEPS - left;
    session->cost += (KEY_STEPS - left) / 4; /* a byte takes a part of a step */
    if (!is_match)
        return;
    resp_add_bulk(&page->keys, key);
    page->found++;
}

/* False: there are no more, or `is_busy_r`. */
static bool fill_page(struct journal_session *session, struct resp_page *page, bool *is_busy_r)
{
    int64_t steps = MATCH_STEPS, passed = 0;
    *is_busy_r = false;
    while (passed < PASSED_MOST && steps > 0 && (int64_t)page->found < page->count) {
        struct records_found found;
        struct bytes after = page->after_size ? (struct bytes){page->after, page->after_size} : NO_BYTES;
        enum records_outcome outcome =
            records_next(session->records, session->caller.ns, session->resp->is_encrypted, page->prefix,
                         after, NO_BYTES, &found);
        bool is_beyond = found.key.data && !bytes_has_prefix(found.key, page->prefix) &&
                         bytes_compare(found.key, page->prefix) > 0;
        if (!found.key.data || is_beyond) {
            *is_busy_r = !found.key.data && outcome != RECORDS_NOT_FOUND;
            return false;
        }
        int64_t keys = outcome == RECORDS_BUSY ? RECORDS_STEPS : 1;
        passed += keys;
        session->cost += keys * PASSED_STEPS;
        page->after_size = found.key.size;
        memcpy(page->after, found.key.data, found.key.size);
        if (outcome == RECORDS_OK)
            pass_key(session, page, (struct bytes){page->after, page->after_size}, &steps);
    }
    return true;
}

static void reply_page(struct journal_session *session, struct resp_page *page, bool has_more,
                       struct builder *out)
{
    char text[RESP_NUMBER_MOST];
    uint64_t cursor = 0;
    if (has_more && session->cursors)
        cursor = resp_scan_note(session->cursors, journal_keys_number(&session->caller), page->cursor,
                                (struct bytes){page->after, page->after_size});
    int size = snprintf(text, sizeof text, "%llu", (unsigned long long)cursor);
    resp_add_array(out, 2);
    resp_add_bulk(out, (struct bytes){text, (size_t)size});
    resp_add_array(out, page->found);
    builder_add_bytes(out, builder_bytes(&page->keys));
}

/* The number of pages shows how many keys there are: only a key without a prefix has them, as in the binary
 * protocol. */
enum journal_next resp_scan(struct journal_session *session, struct builder *out)
{
    char prefix[RESP_GLOB_MOST];
    struct resp_page page = {.count = COUNT_STANDARD, .pattern = NO_BYTES, .prefix = BYTES("")};
    enum journal_next next = JOURNAL_GO_ON;
    bool is_busy = false;
    if (!read_options(session, &page, out) || !take_cursor(session, &page, out))
        return next;
    if (!journal_keys_allow(&session->caller, BYTES(""), false))
        return resp_session_refuse(out, "NOPERM only a key without a prefix may scan");
    if (!resp_session_admit(session, false, out, &next))
        return next;
    if (session->is_spread) /* no host has all keys */
        return resp_session_refuse_outcome(out, RECORDS_UNSUPPORTED);
    if (page.pattern.data)
        page.prefix = (struct bytes){prefix, resp_glob_prefix(page.pattern, prefix)};
    bool has_more =
        !page.is_of_none && page.prefix.size <= RECORDS_KEY_MOST && fill_page(session, &page, &is_busy);
    if (is_busy)
        resp_session_refuse_outcome(out, RECORDS_BUSY);
    else
        reply_page(session, &page, has_more, out);
    builder_free(&page.keys);
    return next;
}

/* Of several stars only the last one is tried again. */

/* The class that begins at `at`, behind its bracket: does it have the byte?  `end_r`: behind it.  As Redis:
 * one that does not end ends with the pattern. */
static bool class_has(struct bytes pattern, size_t at, unsigned char byte, size_t *end_r)
{
    bool is_not = at < pattern.size && pattern.data[at] == '^', has = false;
    at += is_not;
    for (; at < pattern.size && pattern.data[at] != ']'; at++) {
        unsigned char from = (unsigned char)pattern.data[at], to = from;
        if (from == '\\' && at + 1 < pattern.size) {
            from = to = (unsigned char)pattern.data[++at];
        } else if (at + 2 < pattern.size && pattern.data[at + 1] == '-') {
            to = (unsigned char)pattern.data[at + 2];
            at += 2;
        }
        has |= from <= to ? byte >= from && byte <= to : byte >= to && byte <= from;
    }
    *end_r = at < pattern.size ? at + 1 : at;
    return has != is_not;
}

/* Does the piece of the pattern at `at`, no star, match the byte? */
static bool matches_one(struct bytes pattern, size_t at, unsigned char byte, size_t *end_r)
{
    *end_r = at + 1;
    if (pattern.data[at] == '?')
        return true;
    if (pattern.data[at] == '[')
        return class_has(pattern, at + 1, byte, end_r);
    if (pattern.data[at] == '\\' && at + 1 < pattern.size)
        *end_r = ++at + 1;
    return (unsigned char)pattern.data[at] == byte;
}

bool resp_glob_matches(struct bytes pattern, struct bytes text, int64_t *steps)
{
    size_t at = 0, place = 0, star = SIZE_MAX, again = 0;
    while (place < text.size) {
        size_t end = at;
        if (at < pattern.size && pattern.data[at] == '*') {
            star = ++at;
            again = place;
            continue;
        }
        bool is_same = at < pattern.size && matches_one(pattern, at, (unsigned char)text.data[place], &end);
        *steps -= 1 + (int64_t)(end - at);
        if (*steps < 0 || (!is_same && star == SIZE_MAX))
            return false;
        at = is_same ? end : star;
        place = is_same ? place + 1 : ++again;
    }
    while (at < pattern.size && pattern.data[at] == '*')
        at++;
    return at == pattern.size;
}

size_t resp_glob_prefix(struct bytes pattern, char *prefix_r)
{
    size_t size = 0;
    for (size_t at = 0; at < pattern.size; at++) {
        char byte = pattern.data[at];
        if (byte == '*' || byte == '?' || byte == '[')
            break;
        if (byte == '\\' && at + 1 < pattern.size)
            byte = pattern.data[++at];
        prefix_r[size++] = byte;
    }
    return size;
}
