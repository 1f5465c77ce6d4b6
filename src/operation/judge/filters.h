/* filters: what filters of modules (stampd_filter.h) take away from what a caller may read, after the rules.
 *
 * A document of a class with a filter is hidden, shown as it is, or replaced by a snapshot that has only the
 * items, and the contents, that the caller may see.  The name of its view (model/document/view.h) is then a
 * digest of everything that decides which items are shown: the version of the module, the rules' view, the
 * filter's view of the document, and the names of the items shown of classes from which the filter selects.
 * So under one name, equal items are shown alike, a difference can be computed, and what is hidden moves
 * neither the name nor the version. */
#ifndef STAMPD_OPERATION_JUDGE_FILTERS_H
#define STAMPD_OPERATION_JUDGE_FILTERS_H

#include "base/settings.h"
#include "model/document/view.h"
#include "segment/segment.h"

enum filter_sight { FILTER_SHOWS, FILTER_HIDES, FILTER_REWRITES, FILTER_SELECTS };
enum filter_verdict { FILTER_ACCEPTS, FILTER_EXCLUDES, FILTER_REPLACES };

/* Where a decision is made, and for whom. */
struct filter_question {
    const struct settings *settings;
    struct segment *segment; /* whose master watches the code; NULL: nobody does */
    struct bytes ns;         /* code of the namespace */
    const struct rules_caller *caller;
    const char *request_id;
    int64_t deadline_ms; /* monotonic */
};

struct filter_run; /* one decision under way */

/* A filter; its functions are those of the module's bridge (module/module_filter.h). */
struct filter {
    struct bytes class;
    struct bytes version; /* of its module: another one may show otherwise */
    const void *application;
    bool (*applies)(const struct filter *filter, const char *ns);
    /* What the run allocates is in the arena, which ends with it.  view_r: NO_BYTES: the document is hidden;
     * empty: it is shown as it is. */
    struct filter_run *(*begin)(const struct filter *filter, const struct filter_question *question,
                                struct arena *arena, const struct document *document, struct bytes *view_r);
    enum filter_sight (*see)(struct filter_run *run, struct bytes item_class);
    enum filter_verdict (*judge)(struct filter_run *run, const struct item *item, struct bytes *content_r);
    /* False: it has failed, and the document is to be hidden. */
    bool (*end)(struct filter_run *run);
};

/* At start; borrowed permanently.  False: the class has a filter. */
MUST_USE bool filters_add(const struct filter *filter);

/* Those that apply in a namespace, in the arena; NULL: none. */
struct filters;
const struct filters *filters_find(struct arena *arena, struct bytes ns);
/* Has the class one of them?  `filters` may be NULL. */
bool filters_cover(const struct filters *filters, struct bytes class);
/* Adds their classes and versions, as parts of a text to sign.  `filters` may be NULL. */
void filters_add_versions(const struct filters *filters, struct builder *text);

/* Replaces an existing document, which the rules show under view->rules, by what the filter of its class
 * leaves of it, in the arena, and notes in the view what that is.  False: the document is hidden. */
MUST_USE bool filters_show(const struct filters *filters, const struct filter_question *question,
                           struct arena *arena, const struct document **document, struct view *view);
/* Does the filter hide the document, or its items of this class, whether there are any or not? */
MUST_USE bool filters_hide(const struct filters *filters, const struct filter_question *question,
                           const struct document *document, struct bytes item_class);

#endif
