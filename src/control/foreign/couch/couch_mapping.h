/* couch_mapping: which class and items a document of CouchDB becomes (import-couchdb.md).
 *
 * {"class","item","type","classes":{value:class}}; all members may be absent. */
#ifndef STAMPD_CONTROL_FOREIGN_COUCH_COUCH_MAPPING_H
#define STAMPD_CONTROL_FOREIGN_COUCH_COUCH_MAPPING_H

#include "control/foreign/foreign_import.h"

struct couch_mapping;

/* Reads the text, NO_BYTES: none; `class` replaces its member where not NULL.  NULL: `problem_r`, in the
 * arena, says why. */
MUST_USE struct couch_mapping *couch_mapping_read(struct arena *arena, const struct settings *settings,
                                                  struct bytes text, const char *class,
                                                  const char **problem_r);
/* Attachments are left out, and counted. */
void couch_mapping_leave_attachments(struct couch_mapping *mapping);
int64_t couch_mapping_left_out(const struct couch_mapping *mapping);
/* The problem of a document whose attachments are stubs, without their bytes; it is compared as a pointer. */
extern const char couch_mapping_stub[];
/* Appends the document of a row of _all_docs as a line of an archive, of the version `number`; its
 * attachments go to `files`, if not NULL.  A row of _changes also has lines that delete the document in the
 * other classes of the mapping, or in all.  Not FOREIGN_DOCUMENT: nothing is appended. */
enum foreign_event couch_mapping_write(struct couch_mapping *mapping, struct arena *arena, struct bytes row,
                                       int64_t number, struct importer_files *files, struct builder *lines,
                                       const char **problem_r);

#endif
