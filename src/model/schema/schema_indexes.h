/* schema_indexes: reads the indexes over several fields that a class of items declares. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_INDEXES_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_INDEXES_H

#include "model/schema/schema_reader.h"

/* The member `indexes` of the item, whose fields are known. */
MUST_USE bool schema_indexes_read(struct schema_reader *reader, struct schema_node item_node,
                                  struct schema_item *item);

#endif
