/* resource: what operations on a document as a resource share with those on its attachments. */
#ifndef STAMPD_OPERATION_DOCUMENTS_RESOURCE_H
#define STAMPD_OPERATION_DOCUMENTS_RESOURCE_H

#include "model/document/view.h"
#include "operation/attempt.h"
#include "operation/reader.h"

/* A document as the caller sees it. */
struct sight {
    const struct document *document;
    struct view view;
};

/* The name in the path.  FAULT_AARG: it cannot be one. */
MUST_USE enum fault resource_name(const struct reader *reader, struct document_name *name_r);
/* The newest document as the caller sees it, which may be one that does not exist. */
MUST_USE enum fault resource_read(struct attempt *attempt, struct document_name name, struct sight *sight);
/* Opens the document for writing; one that the caller may not read is treated as one that does not exist.
 * FAULT_NDOCUMENT: it does not exist, and it must. */
MUST_USE enum fault resource_fetch(struct attempt *attempt, const struct reader *reader, bool must_exist,
                                   struct draft **draft_r, struct sight *sight);
/* Does the condition name the version that the caller sees? */
bool resource_is_at(const struct version_condition *condition, const struct sight *sight);
/* FAULT_NDOCUMENT, recorded in the reply. */
enum fault resource_refuse_absence(struct attempt *attempt, struct document_name name);

#endif
