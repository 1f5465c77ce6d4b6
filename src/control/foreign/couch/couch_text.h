/* couch_text: texts of JSON by their brackets only, so that one wrong document does not make a page
 * unreadable. */
#ifndef STAMPD_CONTROL_FOREIGN_COUCH_COUCH_TEXT_H
#define STAMPD_CONTROL_FOREIGN_COUCH_COUCH_TEXT_H

#include "base/builder.h"

/* Passes over one value, byte by byte; zero at its start. */
struct couch_scan {
    int64_t depth;
    bool is_in_string, is_escaped;
};
/* Returns true after the bracket that ends the object or array. */
static inline bool couch_scan_ends(struct couch_scan *scan, char c)
{
    if (scan->is_escaped) {
        scan->is_escaped = false;
    } else if (scan->is_in_string) {
        scan->is_escaped = c == '\\';
        scan->is_in_string = c != '"';
    } else if (c == '"') {
        scan->is_in_string = true;
    } else {
        scan->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        return scan->depth == 0;
    }
    return false;
}

/* One object from its first bracket to its last, and nothing but blanks around it. */
bool couch_text_is_whole(struct bytes text);
/* Finds a member of an object, whose name is written without escapes: its value as it is written.  NO_BYTES:
 * none. */
struct bytes couch_text_member(struct bytes object, struct bytes name);
/* Where the list of an object begins that is no document but has them: the offset behind the bracket of its
 * member "rows" or "docs".  0: it has none, or has "_id" or "id" before it.  `head` may end anywhere. */
size_t couch_text_list(struct bytes head, bool *is_rows_r);
/* Writes a document as a row, of _changes or of _all_docs; the id is as it is written. */
void couch_text_wrap(struct builder *row, struct bytes id, struct bytes document, bool is_change);
/* Cuts the next element from the inside of an array; false: there is none, `rest` is what is left. */
bool couch_text_cut(struct bytes *rest, struct bytes *element_r);

#endif
