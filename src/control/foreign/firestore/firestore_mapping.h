/* firestore_mapping: which class and item a document of Firestore becomes (import-firestore.md).
 *
 * {"class","item","classes":{collection:class or null},"not_finite"}; all members may be absent. */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_MAPPING_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_MAPPING_H

#include "control/foreign/foreign_import.h"

struct firestore_mapping;

/* Reads the text, NO_BYTES: none; `class` replaces its member where not NULL.  NULL: `problem_r`, in the
 * arena, says why. */
MUST_USE struct firestore_mapping *firestore_mapping_read(struct arena *arena,
                                                          const struct settings *settings, struct bytes text,
                                                          const char *class, const char **problem_r);
/* Appends the document of an entity as a line of an archive, of the version `number`.  Not FOREIGN_DOCUMENT:
 * nothing is appended; FOREIGN_WRONG: `problem_r`, in `arena`, says why; NULL: its collection has no class,
 * see firestore_mapping_report. */
enum foreign_event firestore_mapping_write(struct firestore_mapping *mapping, struct arena *arena,
                                           struct bytes entity, int64_t number, struct builder *lines,
                                           const char **problem_r);
/* Reports each collection without a class, with its number of documents; of very many the first ones. */
void firestore_mapping_report(const struct firestore_mapping *mapping, const char *path);

#endif
