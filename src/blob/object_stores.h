/* object_stores: the file that names object stores and has their keys (setting object_stores_file): a section
 * for each store (doc/reference/object-stores.md). */
#ifndef STAMPD_BLOB_OBJECT_STORES_H
#define STAMPD_BLOB_OBJECT_STORES_H

#include "blob/object_store.h"

enum { OBJECT_STORES_MOST = 32 };

struct object_stores;
/* Reads the file; "": there are no stores.  One that every user may read is refused.  NULL: `problem` has the
 * reason, in one line.  Texts of the places live as long as the stores. */
struct object_stores *object_stores_open(const char *path, char *problem, size_t problem_size);
void object_stores_close(struct object_stores *stores); /* NULL: does nothing */

/* False: there is no such store, or its section is wrong; `problem` has the reason. */
MUST_USE bool object_stores_find(const struct object_stores *stores, const char *name,
                                 const struct object_store_place **place_r, char *problem,
                                 size_t problem_size);
size_t object_stores_count(const struct object_stores *stores);
const char *object_stores_name(const struct object_stores *stores, size_t number);

#endif
