/* view: a document as a caller sees it that does not see all classes of its items (rules.h), or sees it
 * through a filter (operation/judge/filters.h).
 *
 * Its version is then that of the newest item, or removal of one, that the caller sees, so that a change of
 * what is hidden does not show; its dtime is the same, since the document's own moves with every change.
 * Pure. */
#ifndef STAMPD_MODEL_DOCUMENT_VIEW_H
#define STAMPD_MODEL_DOCUMENT_VIEW_H

#include "base/builder.h"
#include "model/rules/rules.h"

/* What a filter does with a class of items that the document has. */
struct view_class {
    struct bytes name;
    bool is_hidden; /* no item is shown */
    bool is_plain;  /* all are shown, as they are */
};

/* All zero: nothing is hidden. */
struct view {
    struct rules_view rules;
    const char *filtered; /* name of the view of a filter, which includes that of `rules`; NULL: none */
    const struct view_class *classes; /* of the items, under a filter */
    size_t class_count;
    const char *name; /* equal for equal views; NULL or "": nothing is hidden */
    int64_t version;  /* of the document that view_take was given, as the caller sees it */
};

/* Sets name and version from `rules` and `filtered`. */
void view_take(struct view *view, const struct document *document, struct arena *arena);

/* NULL: the document has no such items, or no filter applies. */
const struct view_class *view_find_class(const struct view *view, struct bytes iclass);
static inline bool view_filter_hides(const struct view *view, struct bytes iclass)
{
    const struct view_class *class = view->class_count ? view_find_class(view, iclass) : NULL;
    return class && class->is_hidden;
}

static inline bool view_is_whole(const struct view *view)
{
    return !view || !view->name || !*view->name;
}

static inline bool view_shows(const struct view *view, struct bytes iclass)
{
    return view_is_whole(view) ||
           (rules_view_shows(&view->rules, iclass) && !view_filter_hides(view, iclass));
}
/* Does it show all items of the class, as they are?  Else nothing may be found by their contents. */
static inline bool view_shows_plainly(const struct view *view, struct bytes iclass)
{
    if (!view || !view->filtered)
        return view_shows(view, iclass);
    const struct view_class *class = view_find_class(view, iclass);
    return class && class->is_plain && rules_view_shows(&view->rules, iclass);
}

/* The name, "" for a view that hides nothing. */
struct bytes view_name(const struct view *view);
/* The version of the document that it is of; 0: it does not exist. */
int64_t view_version(const struct view *view, const struct document *document);
/* Appends `{"c","id","v","ct","dt"` and, if something is hidden, `w`. */
void view_write_header(const struct view *view, const struct document *document, struct builder *builder);
/* Appends the document's JSON, with the member `w` before the items if something is hidden. */
static inline void view_write_json(const struct view *view, const struct document *document,
                                   struct builder *builder);
/* An upper bound of the bytes that view_write_json appends. */
static inline size_t view_size(const struct view *view, const struct document *document);

/* The same under a view that hides something. */
void view_write_part(const struct view *view, const struct document *document, struct builder *builder);
size_t view_part_size(const struct view *view, const struct document *document);

static inline void view_write_json(const struct view *view, const struct document *document,
                                   struct builder *builder)
{
    if (view_is_whole(view))
        builder_add_bytes(builder, document->json);
    else
        view_write_part(view, document, builder);
}

static inline size_t view_size(const struct view *view, const struct document *document)
{
    return view_is_whole(view) ? document->json.size : view_part_size(view, document);
}

#endif
