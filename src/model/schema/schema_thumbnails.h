/* schema_thumbnails: the member `thumbnails` of a class of a declaration: names and boxes (schema.md). */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_THUMBNAILS_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_THUMBNAILS_H

#include "model/schema/schema_reader.h"

/* Absent: the class has none. */
bool schema_thumbnails_read(struct schema_reader *reader, struct schema_node class_node,
                            struct schema_class *class);

#endif
