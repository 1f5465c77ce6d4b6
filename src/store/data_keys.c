/* data_keys: a list, short, searched from its end. */
#include "store/data_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "seal/site_key.h"
#include "store/statements.h"

/* Columns of the statement: the mark of the site key, the wrapped key, the name of the database, the classes
 * whose ids are encrypted. */
enum { ID, SITE, WRAPPED, DATABASE, ID_CLASSES };

const struct pg_statement *data_keys_statement(void)
{
    return &statements[STATEMENT_DATA_KEYS];
}

void data_keys_free(struct data_keys *keys)
{
    if (keys->keys) {
        explicit_bzero(keys->keys, keys->count * sizeof *keys->keys);
        sealing_forget();
    }
    free(keys->keys);
    free(keys->id_classes);
    *keys = (struct data_keys){0};
}

/* Why the row cannot be unwrapped. */
static const char *data_keys_explain(const struct pg_result *rows, int row)
{
    if (!*site_key_mark())
        return "the namespace is encrypted, and there is no site key (setting site_key_file or "
               "site_key_command)";
    return bytes_equal(pg_get_text(rows, row, SITE), bytes_of(site_key_mark()))
               ? "a data key was altered, or is of another database"
               : "the namespace is encrypted under another site key than that of the settings";
}

bool data_keys_take(struct data_keys *keys, const struct pg_result *rows, const char **problem_r)
{
    struct arena *arena = arena_create("data keys");
    struct data_keys taken = {0};
    bool is_open = true;
    if (pg_rows(rows)) {
        struct bytes classes = pg_get_text(rows, 0, ID_CLASSES);
        if (!(taken.id_classes = strndup(classes.size ? classes.data : "", classes.size)))
            log_fatal("out of memory data keys");
    }
    if (pg_rows(rows) && !(taken.keys = calloc((size_t)pg_rows(rows), sizeof *taken.keys)))
        log_fatal("out of memory data keys");
    for (int row = 0; row < pg_rows(rows) && is_open; row++) {
        unsigned char secret[SEALING_KEY];
        int64_t id = pg_get_i64(rows, row, ID);
        is_open = site_key_unwrap(arena, pg_get_text(rows, row, SITE), pg_get_text(rows, row, DATABASE), id,
                                  pg_get_text(rows, row, WRAPPED), secret);
        if (is_open)
            sealing_derive(id, secret, &taken.keys[taken.count++]);
        else
            *problem_r = data_keys_explain(rows, row);
        explicit_bzero(secret, sizeof secret);
    }
    arena_destroy(arena);
    data_keys_free(is_open ? keys : &taken);
    if (is_open)
        *keys = taken;
    return is_open;
}

bool data_keys_take_of_ids(struct data_keys *keys, const struct pg_result *rows, const char **problem_r)
{
    if (pg_rows(rows) && pg_get_text(rows, 0, ID_CLASSES).size)
        return data_keys_take(keys, rows, problem_r);
    data_keys_free(keys);
    return true;
}

static const struct sealing_keys *data_keys_find(const struct data_keys *keys, int64_t id)
{
    return sealing_find(keys->keys, keys->count, id);
}

bool data_keys_has(const struct data_keys *keys, int64_t id)
{
    return data_keys_find(keys, id) != NULL;
}

static const struct sealing_keys *newest(const struct data_keys *keys)
{
    return &keys->keys[keys->count - 1];
}

/* --- items --- */

struct bytes data_keys_seal_key(const struct data_keys *keys, struct arena *arena,
                                const struct item_place *place)
{
    const struct bytes parts[] = {BYTES("key"), place->class, place->id, place->iclass};
    if (!keys->count || !place->key.size)
        return place->key;
    return sealing_seal_name(arena, keys->keys, (struct sealing_place){parts, COUNT_OF(parts)}, BYTES(""),
                             place->key);
}

/* Both are authenticated: what is sealed, and what stands behind it. */
enum { CONTENT_PARTS = 6 };
static struct sealing_place place_of_content(const struct item_place *place, struct bytes *parts)
{
    parts[0] = place->is_raw ? BYTES("raw") : BYTES("item");
    parts[1] = place->class;
    parts[2] = place->id;
    parts[3] = place->iclass;
    parts[4] = place->key;
    parts[5] = place->shown;
    return (struct sealing_place){parts, CONTENT_PARTS};
}

struct bytes data_keys_seal_content(const struct data_keys *keys, struct arena *arena,
                                    const struct item_place *place, struct bytes content)
{
    struct bytes parts[CONTENT_PARTS];
    return keys->count
               ? sealing_seal(arena, newest(keys), place_of_content(place, parts), content, place->shown)
               : content;
}

static bool open_text(const struct data_keys *keys, struct arena *arena, struct sealing_place place,
                      struct bytes *text)
{
    const struct sealing_keys *one = data_keys_find(keys, sealing_key_id(*text));
    return one && sealing_open(arena, one, place, *text, text);
}

bool data_keys_open_item(const struct data_keys *keys, struct arena *arena, struct item_place *place,
                         struct bytes *content)
{
    if (!keys->count)
        return true;
    const struct bytes of_key[] = {BYTES("key"), place->class, place->id, place->iclass};
    if (!sealing_open_name(arena, keys->keys, (struct sealing_place){of_key, COUNT_OF(of_key)}, place->key,
                           &place->key))
        return false;
    if (!content->data)
        return true;
    const char *shown = memchr(content->data, '{', content->size); /* no character of base64 */
    size_t size = shown ? (size_t)(shown - content->data) : content->size;
    struct bytes parts[CONTENT_PARTS];
    place->shown = (struct bytes){content->data + size, content->size - size};
    content->size = size;
    return open_text(keys, arena, place_of_content(place, parts), content);
}

/* --- what the database compares --- */

/* By the first key, whatever was added since. */
struct bytes data_keys_hash(const struct data_keys *keys, struct arena *arena, struct bytes class,
                            struct bytes field, struct bytes value)
{
    const struct bytes parts[] = {field.size ? BYTES("field") : BYTES("value"), class, field};
    const struct sealing_place place = {parts, field.size ? 3 : 2};
    return keys->count ? sealing_hash(arena, keys->keys, place, value) : value;
}

struct bytes data_keys_digest(const struct data_keys *keys, struct arena *arena, struct bytes secret,
                              struct bytes kind, struct bytes text)
{
    const struct bytes parts[] = {BYTES("digest"), kind};
    const struct bytes key =
        keys->count ? (struct bytes){(const char *)keys->keys->values, sizeof keys->keys->values} : secret;
    return sealing_digest(arena, key, (struct sealing_place){parts, COUNT_OF(parts)}, text);
}

struct bytes data_keys_seal_name(const struct data_keys *keys, struct arena *arena,
                                 struct sealing_place place, struct bytes name)
{
    if (!keys->count || !name.data)
        return name;
    return sealing_seal_name(arena, keys->keys, place, BYTES("~"), name);
}

bool data_keys_open_name(const struct data_keys *keys, struct arena *arena, struct sealing_place place,
                         struct bytes *name)
{
    if (!keys->count || !name->data)
        return true;
    if (!name->size || name->data[0] != '~')
        return false;
    return sealing_open_name(arena, keys->keys, place, (struct bytes){name->data + 1, name->size - 1}, name);
}

/* --- ids --- */

bool data_keys_has_ids(const struct data_keys *keys)
{
    return keys->count && keys->id_classes && *keys->id_classes;
}

bool data_keys_encrypts_ids(const struct data_keys *keys, struct bytes class)
{
    struct bytes rest = bytes_of(data_keys_has_ids(keys) ? keys->id_classes : "");
    while (rest.size)
        if (bytes_equal(bytes_cut(&rest, ' '), class))
            return true;
    return false;
}

struct bytes data_keys_seal_id(const struct data_keys *keys, struct arena *arena, struct bytes class,
                               struct bytes id)
{
    const struct bytes parts[] = {BYTES("id"), class};
    if (!id.size || !data_keys_encrypts_ids(keys, class))
        return id;
    return data_keys_seal_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, id);
}

bool data_keys_open_id(const struct data_keys *keys, struct arena *arena, struct bytes class,
                       struct bytes *id)
{
    const struct bytes parts[] = {BYTES("id"), class};
    if (!id->size || !data_keys_encrypts_ids(keys, class))
        return true;
    return data_keys_open_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, id) && id->size;
}

/* --- other texts --- */

struct bytes data_keys_seal_text(const struct data_keys *keys, struct arena *arena,
                                 struct sealing_place place, struct bytes text)
{
    return keys->count ? sealing_seal(arena, newest(keys), place, text, BYTES("")) : text;
}

bool data_keys_open_text(const struct data_keys *keys, struct arena *arena, struct sealing_place place,
                         struct bytes *text)
{
    return !keys->count || !text->data || open_text(keys, arena, place, text);
}

/* --- attachments --- */

struct sealed_file_keys data_keys_of_files(const struct data_keys *keys)
{
    return (struct sealed_file_keys){keys->keys, keys->count};
}

struct bytes data_keys_seal_mime(const struct data_keys *keys, struct arena *arena,
                                 const struct item_place *place, struct bytes mime)
{
    const struct bytes parts[] = {BYTES("mime"), place->class, place->id, place->key};
    return data_keys_seal_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, mime);
}

bool data_keys_open_mime(const struct data_keys *keys, struct arena *arena, const struct item_place *place,
                         struct bytes *mime)
{
    const struct bytes parts[] = {BYTES("mime"), place->class, place->id, place->key};
    return data_keys_open_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, mime);
}
