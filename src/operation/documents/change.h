/* change: how the operations that write apply items to a draft, within the limits. */
#ifndef STAMPD_OPERATION_DOCUMENTS_CHANGE_H
#define STAMPD_OPERATION_DOCUMENTS_CHANGE_H

#include "model/document/view.h"
#include "operation/reader.h"
#include "operation/attempt.h"

/* Sets the items {"c","k","j"|"s"} (attachments: attach.h) and, with `may_remove`, removes the items
 * {"c","k","del":true}; then checks the limits of the document.  `items` NULL: none. */
MUST_USE enum fault change_items(struct attempt *attempt, struct draft *draft, const struct json *items,
                                 bool may_remove);

/* Refuses items that change_items, with `may_remove`, would refuse whatever their document is. */
MUST_USE enum fault change_check_items(const struct reader *reader, const struct json *items);

/* For work: makes the answer {"v":version}, the version when nothing is written; for afterwork: replaces the
 * version by that of the commit, if there was one; members that work has added behind it stay.
 * FAULT_BCONTENT: a stored answer is not what work leaves. */
void change_leave_version(struct attempt *attempt, int64_t version);
MUST_USE enum fault change_complete_version(struct attempt *attempt);
/* The version of a document of which nothing is hidden; 0: it does not exist. */
int64_t change_version(const struct document *document);
/* FAULT_AVERSION with class, id and that version. */
enum fault change_refuse_version(const struct reader *reader, const struct document *document);
/* The same with the version under a view (model/document/view.h). */
enum fault change_refuse_view(const struct reader *reader, const struct document *document,
                              const struct view *view);

#endif
