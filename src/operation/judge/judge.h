/* judge: applies the rules of the namespace (model/rules/rules.h) to a caller, and then the filters of
 * modules (filters.h): the only place where operations ask what it may read and change.  Where neither apply
 * (call_is_judged), everything is allowed that the access of the namespace allows (access.h).
 *
 * A decision may depend on another document, a team.  During the work of an operation that document is
 * verified with the transaction: the decision, what was read and what is written were true at one instant,
 * and a member who is removed from a team before the commit cannot write.  After the work
 * (synchronisations), the team is the newest at the moment of the decision, each decision by itself. */
#ifndef STAMPD_OPERATION_JUDGE_JUDGE_H
#define STAMPD_OPERATION_JUDGE_JUDGE_H

#include "model/document/view.h"
#include "operation/attempt.h"

/* May the caller see items of this class in the document?  False if it may not read it. */
MUST_USE enum fault judge_see(struct attempt *attempt, const struct document *document,
                              struct bytes item_class, bool *may_r);
/* May it name this item in order to set or remove it, whether that changes anything or not?  For every item
 * that a request names; what changes is judged by judge_changes. */
MUST_USE enum fault judge_name(struct attempt *attempt, const struct draft *draft, struct bytes item_class,
                               struct bytes key, bool *may_r);
/* FAULT_SRULE, recorded in the reply with the class and id of the document. */
enum fault judge_refuse(struct attempt *attempt, const struct draft *draft);

/* The newest documents, as documents_newest_part: during work as transaction_newest. */
MUST_USE enum fault judge_newest(struct attempt *attempt, const struct document_name *names, size_t count,
                                 size_t bytes_most, const struct document **documents_r);
/* Replaces a document by what the caller may be shown in its place: itself, under the view, what a filter
 * (filters.h) leaves of it, or, if it may not be read, a snapshot of its name that does not exist.  For
 * operations that answer both alike. */
MUST_USE enum fault judge_show(struct attempt *attempt, const struct document **document,
                               struct view *view_r);
/* The same, and the caller must be able to learn of the document from a list or a search. */
MUST_USE enum fault judge_show_listed(struct attempt *attempt, const struct document **document,
                                      struct view *view_r);
/* Loads the newest documents and replaces each as judge_show does.  Those whose views would take more than
 * `bytes_most` stay NULL. */
MUST_USE enum fault judge_load(struct attempt *attempt, const struct document_name *names, size_t count,
                               size_t bytes_most, const struct document **documents_r, struct view *views_r);

/* May the caller learn that the document has changed since the version `since`?  It must be able to read it
 * now (`is_listed`: and to list it), and to see something of it that is not older.  version_r: the version
 * that it sees; 0: it may not. */
MUST_USE enum fault judge_news(struct attempt *attempt, const struct document *document, int64_t since,
                               bool is_listed, int64_t *version_r);
/* The same of a member of the collection (is_listed), if the caller sees the properties as they are. */
struct schema_collection;
MUST_USE enum fault judge_news_in(struct attempt *attempt, const struct document *document,
                                  const struct schema_collection *collection, int64_t since,
                                  int64_t *version_r);

/* Replaces the draft of a document that the caller may not read by another, of a document that does not
 * exist, so that work does the same for both.  Its changes are never written: judge_changes refuses them.
 * view_r: of the document of the draft that is returned. */
MUST_USE enum fault judge_draft(struct attempt *attempt, struct draft **draft, struct view *view_r);
struct stand_in {
    const struct stand_in *next;
    const struct draft *draft; /* of the transaction */
    struct draft *shown;       /* in its place */
};

/* What a filter leaves of the base of a draft that the caller may read; NULL: nothing. */
const struct document *judge_find_shown(struct attempt *attempt, const struct document *base);

/* May the caller leave the document as the draft does? */
MUST_USE enum fault judge_change(struct attempt *attempt, const struct draft *draft, bool *may_r);
/* After the work of an operation that obeys rules: may the caller make every change of the transaction?
 * FAULT_SRULE, recorded in the reply with class and id. */
MUST_USE enum fault judge_changes(struct attempt *attempt);

#endif
