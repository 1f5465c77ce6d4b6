/* records_spaces: the namespaces that have records, and how the disk has them.
 *
 * A namespace is encrypted or not from its creation on, so the kind of a space never changes once something
 * of it may be on disk.  Of two spaces of one code, one belongs to a namespace that was dropped: it is
 * hidden, commands do not find it, and its records are removed when the state of the namespace is read
 * (records_state.h). */
#include "records/records_private.h"

#include <string.h>

static struct records_space *space_at(const struct records *records, int space)
{
    return &records->head->space[space];
}

struct bytes records_space_code(const struct records *records, int space)
{
    const char *code = (const char *)space_at(records, space)->code;
    return (struct bytes){code, strnlen(code, RECORDS_CODE_MOST)};
}

static void words_of(struct bytes code, uint32_t words_r[RECORDS_CODE_MOST / 4])
{
    assert(code.size && code.size <= RECORDS_CODE_MOST);
    memset(words_r, 0, RECORDS_CODE_MOST);
    memcpy(words_r, code.data, code.size);
}

static bool records_spaces_is_of(const struct records_space *space,
                                 const uint32_t words[RECORDS_CODE_MOST / 4])
{
    return memcmp(space->code, words, RECORDS_CODE_MOST) == 0;
}

/* Behind those that are in use; -1: there is no room. */
static int make_space(struct records *records, const uint32_t words[RECORDS_CODE_MOST / 4])
{
    struct records_head *head = records->head;
    if (head->spaces == RECORDS_SPACES_MOST)
        return -1;
    struct records_space *space = &head->space[head->spaces];
    for (size_t i = 0; i < RECORDS_CODE_MOST / 4; i++)
        undo_set(&records->memory, &space->code[i], words[i]);
    undo_set(&records->memory, &head->spaces, head->spaces + 1);
    return (int)head->spaces - 1;
}

static void set_hidden(struct records *records, int space, bool is_hidden)
{
    undo_set(&records->memory, &space_at(records, space)->is_hidden, is_hidden);
}

/* Where none is shown: a hidden one, rather one that has records, as a process may have died between hiding
 * the other and showing it; else a new one. */
static int show_or_make(struct records *records, const uint32_t words[RECORDS_CODE_MOST / 4])
{
    const struct records_head *head = records->head;
    int hidden = -1;
    for (uint32_t i = 0; i < head->spaces; i++)
        if (records_spaces_is_of(&head->space[i], words) && (hidden < 0 || head->space[i].count))
            hidden = (int)i;
    if (hidden < 0)
        return make_space(records, words);
    set_hidden(records, hidden, false);
    return hidden;
}

int records_find_space(struct records *records, struct bytes code, bool is_made)
{
    struct records_head *head = records->head;
    uint32_t words[RECORDS_CODE_MOST / 4];
    words_of(code, words);
    for (uint32_t i = 0; i < head->spaces; i++)
        if (records_spaces_is_of(&head->space[i], words) && !head->space[i].is_hidden)
            return (int)i;
    return is_made ? show_or_make(records, words) : -1;
}

/* --- kinds --- */

enum space_kind records_kind_of(bool is_encrypted)
{
    return is_encrypted ? SPACE_SEALED : SPACE_CLEAR;
}

static void set_kind(struct records *records, int space, enum space_kind kind)
{
    undo_set(&records->memory, &space_at(records, space)->kind, kind);
}

/* The hidden one of this kind and the code of `space`, made if there is none; -1: there is no room. */
static int need_hidden(struct records *records, int space, enum space_kind kind)
{
    const struct records_head *head = records->head;
    const uint32_t *words = head->space[space].code;
    for (uint32_t i = 0; i < head->spaces; i++)
        if (records_spaces_is_of(&head->space[i], words) && head->space[i].is_hidden &&
            head->space[i].kind == kind)
            return (int)i;
    int made = make_space(records, words);
    if (made >= 0) {
        set_hidden(records, made, true);
        set_kind(records, made, kind);
    }
    return made;
}

int records_take_kind(struct records *records, int space, bool is_encrypted, bool is_persisted)
{
    enum space_kind kind = records_kind_of(is_encrypted), present = space_at(records, space)->kind;
    if (present == kind || (present == SPACE_OPEN && !is_persisted))
        return space;
    int other = present == SPACE_OPEN ? space : need_hidden(records, space, kind);
    if (present == SPACE_OPEN) {
        set_kind(records, space, kind);
    } else if (other >= 0) {
        set_hidden(records, space, true);
        set_hidden(records, other, false);
    }
    records_commit(records);
    return other;
}

int records_load_space(struct records *records, struct bytes code, enum space_kind kind)
{
    int space = records_find_space(records, code, true);
    if (space < 0 || space_at(records, space)->kind == kind)
        return space;
    if (space_at(records, space)->kind != SPACE_OPEN)
        return need_hidden(records, space, kind);
    set_kind(records, space, kind);
    return space;
}

/* --- what is removed --- */

static void empty(struct records *records, int space)
{
    const struct records_sought first = {space, BYTES(""), false};
    while (space_at(records, space)->count) {
        uint32_t key = order_find(&records->memory, &records->keys, records_probe, &first);
        assert(key && records_key(records, key)->place >> 16 == (uint32_t)space);
        records_remove_value(records, records_key(records, key)->value);
        records_commit(records);
    }
}

void records_empty_spaces(struct records *records, struct bytes code)
{
    uint32_t words[RECORDS_CODE_MOST / 4];
    words_of(code, words);
    for (uint32_t i = 0; i < records->head->spaces; i++)
        if (records_spaces_is_of(&records->head->space[i], words))
            empty(records, (int)i);
}

void records_settle_space(struct records *records, int space, bool is_encrypted)
{
    struct records_space *own = space_at(records, space);
    enum space_kind kind = records_kind_of(is_encrypted);
    if (own->kind == SPACE_OPEN)
        return;
    if (own->kind != kind) {
        empty(records, space);
        set_hidden(records, space, true);
    } else if (own->is_hidden) {
        int shown = records_find_space(records, records_space_code(records, space), false);
        bool is_other = shown >= 0 && space_at(records, shown)->kind != SPACE_OPEN &&
                        space_at(records, shown)->kind != kind;
        if (is_other)
            set_hidden(records, shown, true);
        if (is_other || shown < 0)
            set_hidden(records, space, false);
    }
    records_commit(records);
}
