/* move_keys: keys are unwrapped here and wrapped there. */
#include "control/move/move_keys.h"

#include <string.h>
#include <unistd.h>

#include "base/coding/hex.h"
#include "control/message.h"
#include "control/move/move_site.h"
#include "control/ns/ns_keys.h"
#include "edge/crypto/crypto.h"
#include "seal/site_key.h"

enum { ID, SITE, WRAPPED, DATABASE, ID_CLASSES }; /* columns of data_keys_statement */
enum { SECRET_BYTES = 32 };
static const struct bytes kind = BYTES("move archives");
static const char what[] = "carrying the data keys over";

struct moved_key {
    int64_t id;
    unsigned char secret[SEALING_KEY];
};
struct moved_keys {
    struct moved_key *keys;
    size_t count;
    struct bytes id_classes; /* whose ids are encrypted */
};

static void move_keys_forget(void *context)
{
    struct moved_keys *keys = context;
    if (keys->count)
        explicit_bzero(keys->keys, keys->count * sizeof *keys->keys);
}

static bool move_keys_read_keys(struct control *control, struct pg *pg, struct moved_keys *keys_r)
{
    struct pg_result *rows;
    struct moved_keys *keys = ARENA_NEW(control->arena, struct moved_keys);
    if (!control_query(control, pg, what, data_keys_statement()->sql, NULL, &rows) ||
        (pg_rows(rows) && !ns_keys_load_site(control)))
        return false;
    *keys = (struct moved_keys){.count = (size_t)pg_rows(rows)};
    keys->keys = ARENA_ARRAY(control->arena, struct moved_key, keys->count + 1);
    if (keys->count)
        keys->id_classes = pg_get_text(rows, 0, ID_CLASSES);
    arena_defer(control->arena, move_keys_forget, keys);
    *keys_r = *keys;
    for (int row = 0; row < pg_rows(rows); row++) {
        keys->keys[row].id = pg_get_i64(rows, row, ID);
        if (site_key_unwrap(control->arena, pg_get_text(rows, row, SITE), pg_get_text(rows, row, DATABASE),
                            keys->keys[row].id, pg_get_text(rows, row, WRAPPED), keys->keys[row].secret))
            continue;
        return message_refuse("%s: a data key cannot be unwrapped by the site key of the settings", what);
    }
    return true;
}

bool move_keys_find_classes(struct control *control, struct pg *pg, const char **classes_r)
{
    struct moved_keys keys;
    *classes_r = NULL;
    if (!move_keys_read_keys(control, pg, &keys) || !keys.count)
        return !keys.count;
    char *classes = arena_copy(control->arena, keys.id_classes.data, keys.id_classes.size);
    for (char *blank = classes; (blank = strchr(blank, ' '));)
        *blank = ',';
    *classes_r = classes;
    return true;
}

/* How many of the first keys are the same. */
static size_t count_same(const struct moved_keys *one, const struct moved_keys *other)
{
    size_t count = 0;
    while (count < one->count && count < other->count && one->keys[count].id == other->keys[count].id &&
           memcmp(one->keys[count].secret, other->keys[count].secret, SEALING_KEY) == 0)
        count++;
    return count;
}

static bool is_unused(struct control *control, struct pg *pg)
{
    static const char sql[] =
        "select exists (select from stampd.doc) or exists (select from stampd.taskqueue)"
        " or exists (select from stampd.idempotency) or exists (select from stampd.subscription)"
        " or exists (select from stampd.blob) or exists (select from stampd.cron)";
    struct pg_result *row;
    if (!control_query(control, pg, what, sql, NULL, &row))
        return false;
    if (pg_get_bool(row, 0, 0))
        message_print(
            "the namespace there has data keys of its own, and has been used: drop it there, and create "
            "it again");
    return !pg_get_bool(row, 0, 0);
}

static bool move_keys_add(struct control *to, struct pg *pg, const struct moved_key *key)
{
    struct pg_result *row;
    if (!control_query(to, pg, what, "select current_database()::text", NULL, &row))
        return false;
    struct bytes wrapped = site_key_wrap(to->arena, pg_get_text(row, 0, 0), key->id, key->secret);
    return control_query(
        to, pg, what,
        "insert into stampd.data_key (id, site, wrapped) values ($1::bigint, $2, $3)"
        " returning id",
        PG_PARAMS(to->arena, PG_I64(key->id), PG_TEXT(bytes_of(site_key_mark())), PG_TEXT(wrapped)), &row);
}

/* Servers there read the keys again with the schema; those of sessions that have begun are not used again. */
static bool move_keys_store(struct control *to, const struct ns_target *target, const struct moved_keys *keys,
                            size_t same, bool is_replaced)
{
    struct pg *pg = target->pg;
    bool is_done =
        !is_replaced || (is_unused(to, pg) && control_execute(pg, what, "delete from stampd.data_key"));
    for (size_t i = same; i < keys->count && is_done; i++)
        is_done = move_keys_add(to, pg, &keys->keys[i]);
    return is_done &&
           control_execute(pg, what, "update stampd.schema set number = number + 1 where one; commit") &&
           (!is_replaced || move_site_end_sessions(to, target));
}

bool move_keys_carry(struct control *from, const struct ns_target *source, struct control *to,
                     const struct ns_target *target)
{
    struct moved_keys here, there;
    if (!move_keys_read_keys(from, source->pg, &here) ||
        !control_execute(target->pg, what, "begin; lock stampd.data_key") ||
        !move_keys_read_keys(to, target->pg, &there))
        return false;
    const size_t same = count_same(&here, &there);
    bool is_replaced = same < there.count && same < here.count;
    bool is_done = false;
    if (!here.count != !there.count)
        message_print("the namespace is encrypted on one of the sites only: create it there %s --encrypted",
                      here.count ? "with" : "without");
    else if (!bytes_equal(here.id_classes, there.id_classes))
        message_print(
            "the ids of other classes are encrypted there: drop it there, and create it again%s%.*s",
            here.id_classes.size ? " with --encrypted-ids of " : " without --encrypted-ids",
            (int)here.id_classes.size, here.id_classes.data);
    else if (same == here.count)
        is_done = true;
    else
        return move_keys_store(to, target, &here, is_replaced ? 0 : same, is_replaced);
    /* A former run may have replaced the keys, and have ended before it ended the sessions. */
    return control_execute(target->pg, what, "rollback") && is_done &&
           (!here.count || move_site_end_sessions(to, target));
}

/* --- archives --- */

static bool draw(struct control *from, const char *path, struct bytes *key_r)
{
    unsigned char random[SECRET_BYTES];
    char *text = ARENA_ROOM(from->arena, char, 2 * SECRET_BYTES + 1);
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, text);
    explicit_bzero(random, sizeof random);
    text[2 * SECRET_BYTES] = '\0';
    *key_r = bytes_of(text);
    return control_write_file(from->arena, path, site_key_seal(from->arena, kind, *key_r), 0600);
}

bool move_keys_of_archives(struct control *from, const struct ns_target *source, const char *path,
                           struct bytes *key_r)
{
    struct data_keys *keys;
    struct bytes text;
    *key_r = NO_BYTES;
    if (!ns_keys_read(from, source->pg, &keys))
        return false;
    if (!keys->count)
        return true;
    if (access(path, F_OK) != 0)
        return draw(from, path, key_r);
    if (!control_read_file(from->arena, path, &text))
        return false;
    if (site_key_open(from->arena, kind, text, key_r))
        return true;
    return message_refuse("%s: it was made under another site key", path);
}
