/* side_table: the side tables of a schema, and the statements that keep them in step with the items.  A
 * session prepares the statements of a table on its first use. */
#ifndef STAMPD_STORE_DOCUMENTS_SIDE_TABLE_H
#define STAMPD_STORE_DOCUMENTS_SIDE_TABLE_H

#include "edge/pg/pg.h"
#include "model/schema/schema.h"

struct side_table {
    const struct schema_class *class;
    const struct schema_item *item;
    struct pg_statement write, wipe;
    bool is_prepared;
};

/* All of the schema, one for each item with exported fields.  The names of their statements contain `turn`:
 * no other list of the same session may have it, because statements of a discarded schema stay prepared. */
struct side_table *side_table_list(struct arena *arena, const struct schema *schema, uint64_t turn,
                                   size_t *count_r);
/* Adds the names of those that are prepared to `left`, separated by blanks: of statements that no longer have
 * a use.  They count as not prepared. */
void side_table_leave(struct side_table *sides, size_t count, struct builder *left);
/* Prepares the statements of the table, unless they are, after deallocating those of `left`. */
MUST_USE enum fault side_table_prepare(struct side_table *side, struct pg *pg, struct arena *arena,
                                       struct builder *left);

#endif
