/* store_shown: what the database of an encrypted namespace reads of items, and how values are found there
 * (model/schema/shown.h).  In other namespaces all stays as it is. */
#ifndef STAMPD_STORE_DOCUMENTS_STORE_SHOWN_H
#define STAMPD_STORE_DOCUMENTS_STORE_SHOWN_H

#include "model/schema/schema.h"
#include "model/schema/search.h"
#include "store/data_keys.h"

/* Sets `place->shown` for the content, by the schema that is applied; NULL: no class is declared.  Of an
 * attachment the name of its file, the size of that on the disk, and the encrypted type are shown always. */
void store_shown_add(const struct data_keys *keys, struct arena *arena, const struct schema *schema,
                     struct item_place *place, struct bytes content);

/* A value of a collection, of so many properties (value_join), as the table of members has it. */
struct bytes store_shown_value(const struct data_keys *keys, struct arena *arena, struct bytes class,
                               struct bytes value, size_t count);

/* The search with the values of fields of type hash as their columns have them. */
struct search store_shown_search(const struct data_keys *keys, struct arena *arena,
                                 const struct search *search);

#endif
