/* archive_order: ids are read, decrypted and sorted, class by class. */
#include "control/archive/archive_order.h"

#include <stdlib.h>
#include <string.h>

#include "control/message.h"
#include "edge/pg/pg_copy.h"

enum { PART_DOCUMENTS = 1000 };

struct archive_ordering {
    struct control *control;
    struct pg *pg;
    const struct data_keys *keys;
    const struct archive_filter *filter;
    struct archive_part *parts;
    size_t count, room;
};

struct listed_id {
    struct bytes id;
    const char *stored;
};

static bool has_class(const struct archive_filter *filter, struct bytes class)
{
    size_t i = 0;
    while (i < filter->class_count && !bytes_equal(bytes_of(filter->classes[i]), class))
        i++;
    return !filter->class_count || i < filter->class_count;
}

/* --- parts --- */

/* The documents of the filter that are of the class. */
static struct archive_part *add_part(struct archive_ordering *ordering, const char *class)
{
    ARENA_GROW(ordering->control->arena, ordering->parts, ordering->count, ordering->room);
    struct archive_part *part = &ordering->parts[ordering->count++];
    const char **classes = ARENA_ARRAY(ordering->control->arena, const char *, 1);
    classes[0] = class;
    *part = (struct archive_part){.filter = *ordering->filter};
    part->filter.classes = classes;
    part->filter.class_count = 1;
    return part;
}

static int by_id(const void *a, const void *b)
{
    return bytes_compare(((const struct listed_id *)a)->id, ((const struct listed_id *)b)->id);
}

static bool read_ids(struct archive_ordering *ordering, const char *class, struct listed_id **list_r,
                     size_t *count_r)
{
    static const char start[] = "copy (select d.id from stampd.doc d where true";
    struct arena *arena = ordering->control->arena;
    const char *classes[] = {class};
    struct archive_filter one = *ordering->filter, stored;
    struct listed_id *list = NULL;
    struct pg_copy_row row;
    size_t count = 0, room = 0;
    one.classes = classes;
    one.class_count = 1;
    if (!archive_filter_store(ordering->control, ordering->keys, &one, &stored) ||
        !archive_filter_copy(ordering->control, ordering->pg, &stored, start, "1"))
        return false;
    enum fault fault;
    while (!(fault = pg_copy_next(ordering->pg, &row)) && row.count) {
        struct bytes id = {arena_copy(arena, row.fields[0].data, row.fields[0].size), row.fields[0].size};
        ARENA_GROW(arena, list, count, room);
        list[count].stored = id.data;
        if (!data_keys_open_id(ordering->keys, arena, bytes_of(class), &id)) {
            message_print("%s: an id cannot be decrypted: it was altered, or is of another class", class);
            return false;
        }
        list[count++].id = id;
    }
    if (fault)
        message_print("reading the ids of %s: %s", class, pg_message(ordering->pg));
    *list_r = list;
    *count_r = count;
    return !fault;
}

static bool add_listed(struct archive_ordering *ordering, const char *class)
{
    struct listed_id *list;
    size_t count;
    if (!read_ids(ordering, class, &list, &count))
        return false;
    if (count)
        qsort(list, count, sizeof *list, by_id);
    const char **ids = ARENA_ARRAY(ordering->control->arena, const char *, count);
    for (size_t i = 0; i < count; i++)
        ids[i] = list[i].stored;
    for (size_t done = 0; done < count; done += PART_DOCUMENTS) {
        struct archive_part *part = add_part(ordering, class);
        part->is_listed = true;
        part->filter.ids = ids + done;
        part->filter.id_count = count - done < PART_DOCUMENTS ? count - done : PART_DOCUMENTS;
    }
    return true;
}

bool archive_order_find(struct control *control, struct pg *pg, const struct data_keys *keys,
                        const struct archive_filter *filter, struct archive_part **parts_r, size_t *count_r)
{
    struct archive_ordering ordering = {.control = control, .pg = pg, .keys = keys, .filter = filter};
    struct archive_filter stored; /* only whether it can be made */
    struct pg_result *rows;
    if (!data_keys_has_ids(keys)) {
        *parts_r = ARENA_NEW(control->arena, struct archive_part);
        (*parts_r)->filter = *filter;
        *count_r = 1;
        return true;
    }
    if (!archive_filter_store(control, keys, filter, &stored) ||
        !control_query(control, pg, "reading the classes",
                       "select distinct class from stampd.doc order by class", NULL, &rows))
        return false;
    bool is_done = true;
    for (int row = 0; row < pg_rows(rows) && is_done; row++) {
        struct bytes name = pg_get_text(rows, row, 0);
        const char *class = arena_copy(control->arena, name.data, name.size);
        if (!has_class(filter, name))
            continue;
        if (data_keys_encrypts_ids(keys, name))
            is_done = add_listed(&ordering, class);
        else
            add_part(&ordering, class);
    }
    *parts_r = ordering.parts;
    *count_r = ordering.count;
    return is_done;
}
