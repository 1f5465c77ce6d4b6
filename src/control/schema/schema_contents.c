/* schema_contents: reads the items of a class in the order of its primary key, each batch from where the last
 * one ended, so that no transaction stays open. */
#include "control/schema/schema_contents.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/record.h"
#include "model/content/content.h"
#include "model/document/mutation.h"

enum { BATCH = 500, STEPS_OF_BYTE = 16 };
enum { ID, ICLASS, KEY, CONTENT, RAW };

static const struct pg_statement statement = {
    "contents",
    "select id, iclass, key, content, raw from stampd.item where class = $1::text"
    " and iclass = any($2::text[]) and content is not null and (id, iclass, key) > ($3::text, $4::text, "
    "$5::text)"
    " order by id, iclass, key limit $6::int",
    6};

struct walk {
    struct control *control;
    struct pg *pg;
    const struct schema_class *class;
    struct bytes *items; /* classes of items that are checked */
    size_t item_count;
    bool is_json;
    struct arena *arena;                /* of a batch */
    struct builder id, item_class, key; /* where the last batch ended */
    int64_t checked, wrong;
};

static void print_violation(const struct walk *walk, const struct pg_result *rows, int row,
                            const struct content_violation *violation)
{
    struct bytes id = pg_get_text(rows, row, ID), item = pg_get_text(rows, row, ICLASS),
                 key = pg_get_text(rows, row, KEY), class = walk->class->name;
    if (walk->is_json) {
        struct record record = {0};
        record_add_text(&record, "class", class);
        record_add_text(&record, "id", id);
        record_add_text(&record, "item", item);
        record_add_text(&record, "key", key);
        record_add_word(&record, "place", violation->place);
        record_add_word(&record, "keyword", violation->keyword);
        record_add_word(&record, "rule", violation->rule);
        record_add_word(&record, "expected", violation->expected);
        record_print(&record);
        return;
    }
    printf("%.*s/%.*s %.*s%s%.*s: %s%s%s (%s)\n", (int)class.size, class.data, (int)id.size, id.data,
           (int)item.size, item.data, key.size ? " " : "", (int)key.size, key.data, violation->place,
           *violation->place ? ": " : "", violation->expected, violation->rule);
}

/* The newest form of the content, as readers get it. */
static void check_row(struct walk *walk, const struct pg_result *rows, int row)
{
    const struct schema_item *item = schema_find_item(walk->class, pg_get_text(rows, row, ICLASS));
    struct bytes content = pg_get_text(rows, row, CONTENT);
    struct content_violation violation;
    walk->checked++;
    if (pg_get_bool(rows, row, RAW) != item->is_raw) {
        violation = (struct content_violation){"", "raw", "",
                                               item->is_raw ? "Raw text is expected." : "JSON is expected."};
    } else {
        if (!item->is_raw && mutation_applies(walk->class))
            content = mutation_apply(walk->arena, walk->class, item->name, content);
        int64_t steps = walk->control->settings.limit_content_steps + STEPS_OF_BYTE * (int64_t)content.size;
        if (content_check(item->content, walk->arena, content, &steps, &violation) == CONTENT_CONFORMS)
            return;
    }
    walk->wrong++;
    print_violation(walk, rows, row, &violation);
}

static void schema_contents_keep(struct builder *place, struct bytes text)
{
    builder_clear(place, text.size);
    builder_add_bytes(place, text);
}

static bool schema_contents_report(struct pg *pg)
{
    const char *message = pg_message(pg);
    return message_refuse("reading contents: %.*s", (int)strcspn(message, "\n"), message);
}

/* `count_r`: rows of the batch. */
static bool check_batch(struct walk *walk, int *count_r)
{
    struct pg_result *rows;
    const struct pg_params *params =
        PG_PARAMS(walk->arena, PG_TEXT(walk->class->name), PG_TEXTS(walk->items, walk->item_count),
                  PG_TEXT(builder_bytes(&walk->id)), PG_TEXT(builder_bytes(&walk->item_class)),
                  PG_TEXT(builder_bytes(&walk->key)), PG_I32(BATCH));
    if (pg_run(walk->pg, &statement, params, &rows))
        return schema_contents_report(walk->pg);
    *count_r = pg_rows(rows);
    for (int row = 0; row < *count_r; row++)
        check_row(walk, rows, row);
    if (*count_r) {
        schema_contents_keep(&walk->id, pg_get_text(rows, *count_r - 1, ID));
        schema_contents_keep(&walk->item_class, pg_get_text(rows, *count_r - 1, ICLASS));
        schema_contents_keep(&walk->key, pg_get_text(rows, *count_r - 1, KEY));
    }
    return true;
}

static bool check_class(struct walk *walk)
{
    bool is_done = true;
    int count = BATCH;
    walk->items = ARENA_ROOM(walk->control->arena, struct bytes, walk->class->item_count);
    walk->item_count = 0;
    for (size_t i = 0; i < walk->class->item_count; i++)
        if (walk->class->items[i].content)
            walk->items[walk->item_count++] = walk->class->items[i].name;
    builder_clear(&walk->id, 0);
    builder_clear(&walk->item_class, 0);
    builder_clear(&walk->key, 0);
    while (walk->item_count && is_done && count == BATCH) {
        is_done = check_batch(walk, &count);
        arena_reset(walk->arena);
    }
    return is_done;
}

bool schema_contents_check(struct control *control, struct pg *pg, const struct schema *schema, bool is_json,
                           int64_t *checked_r, int64_t *wrong_r)
{
    struct walk walk = {.control = control, .pg = pg, .is_json = is_json, .arena = arena_create("contents")};
    bool is_done = pg_prepare(pg, &statement, 1) == FAULT_NONE || schema_contents_report(pg);
    for (size_t i = 0; i < schema->class_count && is_done; i++) {
        walk.class = &schema->classes[i];
        is_done = check_class(&walk);
    }
    builder_free(&walk.id);
    builder_free(&walk.item_class);
    builder_free(&walk.key);
    arena_destroy(walk.arena);
    *checked_r = walk.checked;
    *wrong_r = walk.wrong;
    return is_done;
}
