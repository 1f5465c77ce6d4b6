/* rules: reading the text, deciding. */
#include "model/rules.h"

struct rules {
    size_t class_count;
};

enum fault rules_read(struct arena *arena, struct bytes text, struct rules **rules_r,
                      struct rules_problem *problem_r)
{
    *rules_r = ARENA_NEW(arena, struct rules);
    *problem_r = (struct rules_problem){"", "An object of classes and their rules is expected."};
    return text.size ? FAULT_NONE : FAULT_AARG;
}

bool rules_is_reserved(struct bytes class)
{
    static const char *const names[] = {"Account", "Login", "Ticket"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (bytes_equal(class, bytes_of(names[i])))
            return true;
    return false;
}

bool rules_view_is_whole(const struct rules_view *view)
{
    return !view->class || !view->hidden;
}

bool rules_view_shows(const struct rules_view *view, struct bytes item_class)
{
    (void)item_class;
    return rules_view_is_whole(view);
}

const char *rules_view_name(const struct rules_view *view, struct arena *arena)
{
    return rules_view_is_whole(view) ? "" : arena_printf(arena, "%llx", (unsigned long long)view->hidden);
}

bool rules_may_read(struct rules_question *question, const struct document *document,
                    struct rules_view *view_r)
{
    *view_r = (struct rules_view){0};
    question->rule = "";
    return question->rules->class_count && document_exists(document);
}

bool rules_may_list(struct rules_question *question, const struct document *document,
                    struct rules_view *view_r)
{
    return rules_may_read(question, document, view_r);
}

bool rules_may_change(struct rules_question *question, const struct draft *draft)
{
    question->rule = "";
    return !draft_is_changed(draft);
}
