/* Every statement once: STATEMENT(NAME, "name", parameters, "sql").  Included several times.
 *
 * Pitfalls that shaped them (each was found by experiment): an unreferenced part of a WITH never runs,
 * neither its locks nor its fail(); all parts of a statement see one snapshot, so rows that were waited for
 * must be read in a later statement; rows are locked in one sorted pass, whose sorted subquery must stay a
 * subquery. */

#include "store/statements_documents_table.h"
#include "store/statements_collections_table.h"
#include "store/statements_tasks_table.h"
#include "store/statements_blobs_table.h"
#include "store/statements_thumbnails_table.h"
