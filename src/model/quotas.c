/* quotas: the member of a configuration, read strictly. */
#include "model/quotas.h"

#include "model/document/item.h"

static const char *const subjects[QUOTA_SUBJECTS] = {"address", "account", "namespace"};
static const char *const kinds[QUOTA_KINDS] = {"requests",      "writes", "tasks",
                                               "subscriptions", "live",   "streams"};
static const char *const numbers[QUOTA_NUMBERS] = {"bytes",         "live_open",          "streams_open",
                                                   "tasks_waiting", "subscriptions_held", "file_bytes"};
static const char *const stored[QUOTA_STORED] = {"bytes", "file_bytes"};
#define RATES(subject)                                                                                       \
    subject ".requests", subject ".writes", subject ".tasks", subject ".subscriptions", subject ".live",     \
        subject ".streams"
#define NUMBERS(subject)                                                                                     \
    subject ".bytes", subject ".live_open", subject ".streams_open", subject ".tasks_waiting",               \
        subject ".subscriptions_held", subject ".file_bytes"
static const char *const names[] = {RATES("address"),   RATES("account"),    RATES("namespace"),
                                    NUMBERS("address"), NUMBERS("account"),  NUMBERS("namespace"),
                                    "classes.bytes",    "classes.file_bytes"};
_Static_assert(COUNT_OF(names) == QUOTAS_ALL, "each quota has its name");

const char *quotas_name(int quota)
{
    return names[quota];
}

static size_t find_word(const char *const *words, size_t count, struct bytes word)
{
    size_t place = 0;
    while (place < count && !bytes_equal(word, bytes_of(words[place])))
        place++;
    return place;
}

/* --- a rate --- */

/* Takes 1 to QUOTAS_COUNT_MOST from the beginning of the text. */
static bool quotas_take_number(struct bytes *text, int64_t *number_r)
{
    size_t digits = 0;
    for (*number_r = 0; digits < text->size && text->data[digits] >= '0' && text->data[digits] <= '9';
         digits++)
        if ((*number_r = *number_r * 10 + (text->data[digits] - '0')) > QUOTAS_COUNT_MOST)
            return false;
    text->data += digits;
    text->size -= digits;
    return digits && *number_r;
}

static bool take_word(struct bytes *text, struct bytes word)
{
    if (text->size < word.size || memcmp(text->data, word.data, word.size) != 0)
        return false;
    text->data += word.size;
    text->size -= word.size;
    return true;
}

static bool take_period(struct bytes *text, int64_t *period_ms_r)
{
    static const struct {
        const char *word;
        int64_t ms;
    } periods[] = {{"/s", 1000}, {"/min", 60000}, {"/h", 3600000}, {"/d", 86400000}};
    for (size_t i = 0; i < COUNT_OF(periods); i++)
        if (take_word(text, bytes_of(periods[i].word))) {
            *period_ms_r = periods[i].ms;
            return true;
        }
    return false;
}

bool quotas_read_rate(struct arena *arena, struct bytes text, struct quota_rate *rate_r)
{
    struct bytes rest = text;
    if (!quotas_take_number(&rest, &rate_r->count) || !take_period(&rest, &rate_r->period_ms) ||
        rate_r->count > rate_r->period_ms * QUOTAS_RATES_MOST)
        return false;
    rate_r->burst = rate_r->count;
    if (rest.size && (!take_word(&rest, BYTES(", burst ")) || !quotas_take_number(&rest, &rate_r->burst)))
        return false;
    rate_r->text = arena_copy(arena, text.data, text.size);
    return !rest.size;
}

/* --- the whole --- */

/* False: there is no such number.  No document belongs to an address; files of accounts are not counted
 * apart. */
static bool quotas_read_number(const struct json *member, size_t subject, struct quotas *quotas)
{
    size_t number = find_word(numbers, QUOTA_NUMBERS, member->name);
    if (number == QUOTA_NUMBERS || (number == QUOTA_BYTES && subject == QUOTA_ADDRESS) ||
        (number == QUOTA_FILE_BYTES && subject != QUOTA_NAMESPACE))
        return false;
    int64_t *most = &quotas->numbers[subject][number];
    return json_is_i64(member, most) && *most > 0;
}

static bool read_subject(struct arena *arena, const struct json *object, struct quotas *quotas)
{
    size_t subject = find_word(subjects, QUOTA_SUBJECTS, object->name);
    if (subject == QUOTA_SUBJECTS || object->kind != JSON_OBJECT)
        return false;
    for (const struct json *member = object->first; member; member = member->next) {
        size_t kind = find_word(kinds, QUOTA_KINDS, member->name);
        if (kind == QUOTA_KINDS) {
            if (!quotas_read_number(member, subject, quotas))
                return false;
            continue;
        }
        if (member->kind != JSON_STRING ||
            !quotas_read_rate(arena, member->value, &quotas->rates[subject][kind]))
            return false;
        quotas->kinds |= 1u << kind;
    }
    return true;
}

static bool read_class(const struct json *object, struct quota_class *class_r)
{
    *class_r = (struct quota_class){.name = object->name};
    if (object->kind != JSON_OBJECT || !item_is_class_name(object->name))
        return false;
    for (const struct json *member = object->first; member; member = member->next) {
        size_t kind = find_word(stored, QUOTA_STORED, member->name);
        if (kind == QUOTA_STORED || !json_is_i64(member, &class_r->most[kind]) || class_r->most[kind] <= 0)
            return false;
    }
    return true;
}

static bool quotas_read_classes(const struct json *object, struct quotas *quotas)
{
    if (object->kind != JSON_OBJECT)
        return false;
    for (const struct json *member = object->first; member; member = member->next)
        if (quotas->class_count == QUOTAS_CLASSES_MOST ||
            !read_class(member, &quotas->classes[quotas->class_count++]))
            return false;
    return true;
}

bool quotas_read(struct arena *arena, const struct json *value, const struct quotas **quotas_r)
{
    static const struct json_limits limits = {.depth = 3, .tree_depth = 3, .nodes = 128};
    struct json *object;
    struct json_problem problem;
    struct quotas *quotas = ARENA_NEW(arena, struct quotas);
    if (value->kind != JSON_OBJECT || value->text.size > QUOTAS_TEXT_MOST ||
        json_read(arena, value->text, &limits, &object, &problem))
        return false;
    for (const struct json *member = object->first; member; member = member->next)
        if (bytes_equal(member->name, BYTES("classes")) ? !quotas_read_classes(member, quotas)
                                                        : !read_subject(arena, member, quotas))
            return false;
    quotas->text = value->text;
    *quotas_r = quotas;
    return true;
}
