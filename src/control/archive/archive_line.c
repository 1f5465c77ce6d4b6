/* archive_line: composes lines, and scans them without building a tree. */
#include "control/archive/archive_line.h"

#include <endian.h>

#include "base/coding/hex.h"
#include "edge/json/json.h"
#include "edge/json/json_string.h"
#include "model/document/attachment.h"
#include "model/document/item.h"

enum { ID_MOST = 255 };

/* --- composing --- */

static void archive_line_add_number(struct builder *line, const char *name, int64_t number)
{
    builder_add(line, name, strlen(name));
    builder_add_i64(line, number);
}

void archive_line_begin(struct builder *line, const struct archive_header *header)
{
    builder_add_text(line, "{\"c\":\"");
    builder_add_bytes(line, header->class);
    json_add_text(line, "\",\"id\":", header->id);
    archive_line_add_number(line, ",\"v\":", header->version);
    if (!header->ctime)
        return;
    archive_line_add_number(line, ",\"ct\":", header->ctime);
    archive_line_add_number(line, ",\"dt\":", header->dtime);
    builder_add_text(line, ",\"items\":[");
}

void archive_line_add_item(struct builder *line, const struct archive_item *item, bool is_first)
{
    if (!is_first)
        builder_add_text(line, ",");
    builder_add_text(line, "{\"c\":\"");
    builder_add_bytes(line, item->class);
    builder_add_text(line, "\"");
    if (item->key.size)
        json_add_text(line, ",\"k\":", item->key);
    archive_line_add_number(line, ",\"v\":", item->version);
    if (!item->content.data) {
        builder_add_text(line, ",\"del\":true}");
        return;
    }
    if (item->vop != item->version)
        archive_line_add_number(line, ",\"op\":", item->vop);
    if (item->is_raw) {
        json_add_text(line, ",\"s\":", item->content);
    } else if (memchr(item->content.data, '\n', item->content.size) ||
               memchr(item->content.data, '\r', item->content.size)) {
        json_add_text(line, ",\"t\":", item->content);
    } else {
        builder_add_text(line, ",\"j\":");
        builder_add_bytes(line, item->content);
    }
    builder_add_text(line, "}");
}

void archive_line_end(struct builder *line, const struct archive_header *header)
{
    if (header->ctime)
        builder_add_text(line, "]}\n");
    else
        builder_add_text(line, ",\"del\":true}\n");
}

/* --- reading --- */

struct line_scan {
    struct arena *arena;
    const char *at, *end;
};

static void archive_line_skip_blanks(struct line_scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r'))
        scan->at++;
}

static bool archive_line_take(struct line_scan *scan, char expected)
{
    archive_line_skip_blanks(scan);
    if (scan->at == scan->end || *scan->at != expected)
        return false;
    scan->at++;
    return true;
}

/* The string's text between its quotes. */
static bool take_raw_string(struct line_scan *scan, struct bytes *raw_r)
{
    if (!archive_line_take(scan, '"'))
        return false;
    raw_r->data = scan->at;
    for (; scan->at < scan->end && *scan->at != '"'; scan->at++)
        if (*scan->at == '\\' && ++scan->at == scan->end)
            return false;
    raw_r->size = (size_t)(scan->at - raw_r->data);
    return scan->at++ < scan->end;
}

/* Are the escapes complete?  json_string_decode relies on it. */
static bool has_good_escapes(struct bytes raw)
{
    for (size_t i = 0; i < raw.size; i++) {
        if ((unsigned char)raw.data[i] < ' ')
            return false;
        if (raw.data[i] != '\\')
            continue;
        i++;
        if (raw.data[i] == 'u') {
            for (int digit = 0; digit < 4; digit++)
                if (++i >= raw.size || !strchr("0123456789abcdefABCDEF", raw.data[i]) || !raw.data[i])
                    return false;
        } else if (!raw.data[i] || !strchr("\"\\/bfnrt", raw.data[i])) {
            return false;
        }
    }
    return true;
}

static bool take_string(struct line_scan *scan, struct bytes *value_r)
{
    struct bytes raw;
    size_t offset;
    if (!take_raw_string(scan, &raw) || !has_good_escapes(raw))
        return false;
    *value_r = raw;
    if (!raw.size || !memchr(raw.data, '\\', raw.size))
        return true;
    char *value = arena_alloc(scan->arena, raw.size);
    value_r->data = value;
    return json_string_decode(raw, value, &value_r->size, &offset) == NULL;
}

/* A value of any kind, up to the bracket that ends it: strings inside may have brackets. */
static bool archive_line_take_value(struct line_scan *scan, struct bytes *text_r)
{
    struct bytes raw;
    archive_line_skip_blanks(scan);
    text_r->data = scan->at;
    for (int64_t depth = 0; scan->at < scan->end; scan->at++) {
        char c = *scan->at;
        if (c == '"') {
            if (!take_raw_string(scan, &raw))
                return false;
            scan->at--;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']' || c == ',') && depth == 0) {
            break;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    text_r->size = (size_t)(scan->at - text_r->data);
    return text_r->size > 0;
}

static bool archive_line_take_number(struct line_scan *scan, int64_t *number_r)
{
    struct bytes text;
    return archive_line_take_value(scan, &text) && bytes_to_i64(text, number_r) && *number_r >= 0;
}

static bool take_true(struct line_scan *scan)
{
    struct bytes text;
    return archive_line_take_value(scan, &text) && bytes_equal(text, BYTES("true"));
}

static bool take_item_member(struct line_scan *scan, struct bytes name, struct archive_item *item)
{
    if (bytes_equal(name, BYTES("c")))
        return take_string(scan, &item->class);
    if (bytes_equal(name, BYTES("k")))
        return take_string(scan, &item->key);
    if (bytes_equal(name, BYTES("v")))
        return archive_line_take_number(scan, &item->version);
    if (bytes_equal(name, BYTES("op")))
        return archive_line_take_number(scan, &item->vop);
    if (bytes_equal(name, BYTES("del")))
        return take_true(scan);
    if (item->content.data)
        return false;
    if (bytes_equal(name, BYTES("j")))
        return archive_line_take_value(scan, &item->content);
    item->is_raw = bytes_equal(name, BYTES("s"));
    return (item->is_raw || bytes_equal(name, BYTES("t"))) && take_string(scan, &item->content);
}

static bool take_item(struct line_scan *scan, struct archive_item *item_r)
{
    struct archive_item item = {.key = BYTES(""), .vop = -1};
    struct bytes name;
    bool is_removed = false;
    if (!archive_line_take(scan, '{'))
        return false;
    do {
        if (!take_string(scan, &name) || !archive_line_take(scan, ':') ||
            !take_item_member(scan, name, &item))
            return false;
        is_removed = is_removed || bytes_equal(name, BYTES("del"));
    } while (archive_line_take(scan, ','));
    if (item.vop < 0)
        item.vop = is_removed ? 0 : item.version;
    *item_r = item;
    return archive_line_take(scan, '}') && is_removed == !item.content.data && item.class.data &&
           item_is_class_name(item.class) && item.key.size <= ID_MOST;
}

static bool take_items(struct line_scan *scan, struct archive_document *document)
{
    size_t room = 0;
    document->items = NULL;
    document->count = 0;
    if (!archive_line_take(scan, '['))
        return false;
    if (archive_line_take(scan, ']'))
        return true;
    do {
        ARENA_GROW(scan->arena, document->items, document->count, room);
        struct archive_item *item = &document->items[document->count++];
        if (!take_item(scan, item))
            return false;
        document->bytes += (int64_t)(item->content.data ? item->key.size + item->content.size : 0);
    } while (archive_line_take(scan, ','));
    return archive_line_take(scan, ']');
}

static bool take_member(struct line_scan *scan, struct bytes name, struct archive_document *document,
                        bool *is_deleted)
{
    struct archive_header *header = &document->header;
    if (bytes_equal(name, BYTES("c")))
        return take_string(scan, &header->class);
    if (bytes_equal(name, BYTES("id")))
        return take_string(scan, &header->id);
    if (bytes_equal(name, BYTES("v")))
        return archive_line_take_number(scan, &header->version);
    if (bytes_equal(name, BYTES("ct")))
        return archive_line_take_number(scan, &header->ctime);
    if (bytes_equal(name, BYTES("dt")))
        return archive_line_take_number(scan, &header->dtime);
    if (bytes_equal(name, BYTES("items")))
        return take_items(scan, document);
    *is_deleted = true;
    return bytes_equal(name, BYTES("del")) && take_true(scan);
}

int64_t archive_line_attached(const struct archive_document *document)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < document->count; i++)
        if (document->items[i].content.data && bytes_equal(document->items[i].class, ATTACHMENT_CLASS))
            bytes += attachment_size(document->items[i].content);
    return bytes;
}

bool archive_line_read(struct arena *arena, struct bytes line, struct archive_document *document_r,
                       const char **problem_r)
{
    struct line_scan scan = {arena, line.data, line.data + line.size};
    struct archive_header *header = &document_r->header;
    struct bytes name;
    bool is_deleted = false;
    *document_r = (struct archive_document){0};
    *problem_r = "expected a document {\"c\",\"id\",\"v\",\"ct\",\"dt\",\"items\"}";
    if (!archive_line_take(&scan, '{'))
        return false;
    do {
        if (!take_string(&scan, &name) || !archive_line_take(&scan, ':') ||
            !take_member(&scan, name, document_r, &is_deleted))
            return false;
    } while (archive_line_take(&scan, ','));
    bool is_whole = archive_line_take(&scan, '}');
    document_r->is_deleted = is_deleted;
    archive_line_skip_blanks(&scan);
    if (!is_whole || scan.at != scan.end)
        return false;
    if (!header->class.data || !item_is_class_name(header->class))
        *problem_r = "expected as \"c\" a capital, then up to 15 letters and digits";
    else if (!header->id.size || header->id.size > ID_MOST)
        *problem_r = "expected as \"id\" a text of 1 to 255 bytes";
    else if (is_deleted ? document_r->count > 0 || header->ctime : false)
        *problem_r = "expected no items and no \"ct\" of a deleted document";
    else
        return true;
    return false;
}

/* Additions modulo 2^256. */

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
