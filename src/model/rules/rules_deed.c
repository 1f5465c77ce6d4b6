/* rules_deed: each deed is a question of rules.h. */
#include "model/rules/rules_deed.h"

static const char *const deeds[] = {
    [RULES_DEED_READ] = "read",     [RULES_DEED_LIST] = "list",     [RULES_DEED_CREATE] = "create",
    [RULES_DEED_UPDATE] = "update", [RULES_DEED_DELETE] = "delete", [RULES_DEED_SEE] = "see",
    [RULES_DEED_WRITE] = "write"};

bool rules_deed_find(struct bytes word, enum rules_deed *deed_r)
{
    for (size_t i = 0; i < COUNT_OF(deeds); i++)
        if (bytes_equal(word, bytes_of(deeds[i]))) {
            *deed_r = (enum rules_deed)i;
            return true;
        }
    return false;
}

const char *rules_deed_word(enum rules_deed deed)
{
    return deeds[deed];
}

bool rules_deed_may(struct rules_question *question, enum rules_deed deed, const struct draft *draft,
                    struct bytes item_class, struct rules_view *view_r)
{
    const struct document *before = draft_base(draft);
    switch (deed) {
    case RULES_DEED_READ:
        return rules_may_read(question, before, view_r);
    case RULES_DEED_LIST:
        return rules_may_list(question, before, view_r);
    case RULES_DEED_SEE:
        return rules_may_see(question, before, item_class);
    case RULES_DEED_WRITE:
        return rules_may_write(question, draft, item_class);
    case RULES_DEED_CREATE:
    case RULES_DEED_UPDATE:
    case RULES_DEED_DELETE:
        break;
    }
    return draft_is_changed(draft) ? rules_may_change(question, draft)
                                   : rules_may_write(question, draft, NO_BYTES);
}
