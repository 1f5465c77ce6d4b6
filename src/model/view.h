/* view: a document as a caller sees it that does not see all classes of its items (rules.h).  Pure. */
#ifndef STAMPD_MODEL_VIEW_H
#define STAMPD_MODEL_VIEW_H

#include "base/builder.h"
#include "model/rules.h"

/* All zero: nothing is hidden. */
struct view {
    struct rules_view rules;
    const char *name; /* rules_view_name: equal for equal views; NULL or "": nothing is hidden */
};

static inline bool view_is_whole(const struct view *view)
{
    return !view || !view->name || !*view->name;
}

static inline bool view_shows(const struct view *view, struct bytes iclass)
{
    return view_is_whole(view) || rules_view_shows(&view->rules, iclass);
}

/* The name, "" for a view that hides nothing. */
struct bytes view_name(const struct view *view);
/* Appends `,"w":"name"`; nothing for a view that hides nothing. */
void view_write_name(const struct view *view, struct builder *builder);
/* Appends the document's JSON, with the member `w` before the items if something is hidden. */
void view_write_json(const struct view *view, const struct document *document, struct builder *builder);
/* The number of bytes that view_write_json appends. */
size_t view_size(const struct view *view, const struct document *document);

#endif
