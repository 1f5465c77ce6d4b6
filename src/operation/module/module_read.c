/* module_read: typed reading of JSON values by modules (stampd.h).
 *
 * A value whose text lies in that of the argument `param` came with the request: an error in it is the
 * caller's (AARG).  Any other value was stored, or made by the application (BCONTENT). */
#include "operation/module/module_convert.h"
#include "operation/module/module_try.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "model/document/stamp.h"

static const struct json no_object = {.kind = JSON_OBJECT, .text = {"{}", 2}};
static const struct json no_array = {.kind = JSON_ARRAY, .text = {"[]", 2}};

const struct stampd_json *stampd_param(struct stampd_call *call)
{
    const struct json *param = module_try_attempt(call)->call->param;
    return value_of(param ? param : &no_object);
}

/* --- walking --- */

/* Values deep in an argument were checked, but not built: they are built on first access. */
static const struct json *open_value(struct stampd_call *call, const struct json *value)
{
    const char *what;
    if (!value || !value->is_shallow)
        return value;
    struct json *shallow = (struct json *)value; /* made by json_read, in memory that may be written */
    const struct json *built = module_try_read_json(call, value->text, &what);
    if (!built)
        return &no_object; /* more nodes than can be: it has passed the same check before */
    shallow->first = built->first;
    shallow->count = built->count;
    shallow->is_shallow = false;
    return shallow;
}

const struct stampd_json *stampd_member(struct stampd_call *call, const struct stampd_json *object,
                                        const char *name)
{
    return value_of(json_member(open_value(call, json_of(object)), name));
}

const struct stampd_json *stampd_first(struct stampd_call *call, const struct stampd_json *value)
{
    const struct json *opened = open_value(call, json_of(value));
    return opened ? value_of(opened->first) : NULL;
}

const struct stampd_json *stampd_next(const struct stampd_json *value)
{
    return value ? value_of(json_of(value)->next) : NULL;
}

size_t stampd_count(const struct stampd_json *value)
{
    return value ? json_of(value)->count : 0;
}

enum stampd_kind stampd_kind(const struct stampd_json *value)
{
    static const enum stampd_kind kinds[] = {
        [JSON_NULL] = STAMPD_NULL,     [JSON_FALSE] = STAMPD_FALSE,   [JSON_TRUE] = STAMPD_TRUE,
        [JSON_NUMBER] = STAMPD_NUMBER, [JSON_STRING] = STAMPD_STRING, [JSON_ARRAY] = STAMPD_ARRAY,
        [JSON_OBJECT] = STAMPD_OBJECT,
    };
    return value ? kinds[json_of(value)->kind] : STAMPD_NULL;
}

struct stampd_bytes stampd_member_name(const struct stampd_json *value)
{
    return bytes_to(value ? json_of(value)->name : NO_BYTES);
}

struct stampd_bytes stampd_json_text(const struct stampd_json *value)
{
    return bytes_to(value ? json_of(value)->text : NO_BYTES);
}

const struct stampd_json *stampd_parse(struct stampd_call *call, struct stampd_bytes text)
{
    const char *what;
    return text.data ? value_of(module_try_read_json(call, bytes_from(text), &what)) : NULL;
}

/* --- reading --- */

static bool is_argument(const struct stampd_call *call, const struct json *value)
{
    const struct json *param = module_try_attempt(call)->call->param;
    if (value == &no_object || value == &no_array)
        return true;
    return param && value && (uintptr_t)value->text.data >= (uintptr_t)param->text.data &&
           (uintptr_t)value->text.data + value->text.size <= (uintptr_t)param->text.data + param->text.size;
}

static void wrong(struct stampd_call *call, const struct json *object, const char *name, const char *expected)
{
    bool is_callers = is_argument(call, object);
    if (!name && object && object->name.data)
        name = arena_copy(module_try_arena(call), object->name.data, object->name.size);
    if (!name)
        name = is_callers ? "param" : "";
    module_try_fail(call, is_callers ? FAULT_AARG : FAULT_BCONTENT, expected, name);
}

/* The value to be read, NULL when it is absent or null. */
static const struct json *module_read_find(struct stampd_call *call, const struct json *object,
                                           const char *name)
{
    const struct json *value = name ? json_member(open_value(call, object), name) : object;
    return value && value->kind != JSON_NULL ? value : NULL;
}

/* --- numbers --- */

static int64_t read_integer(struct stampd_call *call, const struct stampd_json *object, const char *name,
                            int64_t least, int64_t most, bool may_be_absent, int64_t otherwise)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    int64_t number;
    if (!value && may_be_absent)
        return otherwise;
    if (value && json_is_i64(value, &number) && number >= least && number <= most)
        return number;
    wrong(call, json_of(object), name,
          arena_printf(module_try_arena(call), "An integer from %" PRId64 " to %" PRId64 " is expected.",
                       least, most));
    return otherwise;
}

int64_t stampd_read_integer(struct stampd_call *call, const struct stampd_json *object, const char *name,
                            int64_t least, int64_t most)
{
    return read_integer(call, object, name, least, most, false, least);
}

int64_t stampd_read_integer_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                               int64_t least, int64_t most, int64_t otherwise)
{
    return read_integer(call, object, name, least, most, true, otherwise);
}

static double module_read_read_number(struct stampd_call *call, const struct stampd_json *object,
                                      const char *name, double least, double most, bool may_be_absent,
                                      double otherwise)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    if (!value && may_be_absent)
        return otherwise;
    if (value && value->kind == JSON_NUMBER) {
        double number = strtod(arena_copy(module_try_arena(call), value->text.data, value->text.size), NULL);
        if (isfinite(number) && number >= least && number <= most)
            return number;
    }
    wrong(call, json_of(object), name,
          arena_printf(module_try_arena(call), "A number from %g to %g is expected.", least, most));
    return otherwise;
}

double stampd_read_number(struct stampd_call *call, const struct stampd_json *object, const char *name,
                          double least, double most)
{
    return module_read_read_number(call, object, name, least, most, false, least);
}

double stampd_read_number_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                             double least, double most, double otherwise)
{
    return module_read_read_number(call, object, name, least, most, true, otherwise);
}

int64_t stampd_read_stamp(struct stampd_call *call, const struct stampd_json *object, const char *name)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    int64_t stamp;
    if (value && json_is_i64(value, &stamp) && stamp_is_valid(stamp))
        return stamp;
    wrong(call, json_of(object), name, "A stamp of 15 digits is expected.");
    return STAMP_MIN;
}

static bool read_boolean(struct stampd_call *call, const struct stampd_json *object, const char *name,
                         bool may_be_absent, bool otherwise)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    if (!value && may_be_absent)
        return otherwise;
    if (value && (value->kind == JSON_TRUE || value->kind == JSON_FALSE))
        return value->kind == JSON_TRUE;
    wrong(call, json_of(object), name, "true or false is expected.");
    return otherwise;
}

bool stampd_read_boolean(struct stampd_call *call, const struct stampd_json *object, const char *name)
{
    return read_boolean(call, object, name, false, false);
}

bool stampd_read_boolean_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                            bool otherwise)
{
    return read_boolean(call, object, name, true, otherwise);
}

/* --- texts --- */

static const struct json *find_text(struct stampd_call *call, const struct stampd_json *object,
                                    const char *name, size_t least, size_t most, bool may_be_absent)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    if (value ? value->kind == JSON_STRING && value->value.size >= least && value->value.size <= most
              : may_be_absent)
        return value;
    wrong(call, json_of(object), name,
          arena_printf(module_try_arena(call), "A string of %zu to %zu bytes is expected.", least, most));
    return NULL;
}

const char *stampd_read_text(struct stampd_call *call, const struct stampd_json *object, const char *name,
                             size_t least, size_t most)
{
    const struct json *value = find_text(call, object, name, least, most, false);
    return value ? arena_copy(module_try_arena(call), value->value.data, value->value.size) : "";
}

const char *stampd_read_text_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                                size_t least, size_t most, const char *otherwise)
{
    const struct json *value = find_text(call, object, name, least, most, true);
    return value ? arena_copy(module_try_arena(call), value->value.data, value->value.size) : otherwise;
}

struct stampd_bytes stampd_read_bytes(struct stampd_call *call, const struct stampd_json *object,
                                      const char *name, size_t most)
{
    const struct json *value = find_text(call, object, name, 0, most, false);
    return bytes_to(value ? value->value : BYTES(""));
}

static size_t read_choice(struct stampd_call *call, const struct stampd_json *object, const char *name,
                          const char *const *words, bool may_be_absent, size_t otherwise)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    const char *expected = "One of these is expected:";
    if (!value && may_be_absent)
        return otherwise;
    for (size_t i = 0; value && words[i]; i++)
        if (value->kind == JSON_STRING && bytes_equal(value->value, bytes_of(words[i])))
            return i;
    for (size_t i = 0; words[i]; i++)
        expected = arena_printf(module_try_arena(call), "%s%s %s", expected, i ? "," : "", words[i]);
    wrong(call, json_of(object), name, arena_printf(module_try_arena(call), "%s.", expected));
    return otherwise;
}

size_t stampd_read_choice(struct stampd_call *call, const struct stampd_json *object, const char *name,
                          const char *const *words)
{
    return read_choice(call, object, name, words, false, 0);
}

size_t stampd_read_choice_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                             const char *const *words, size_t otherwise)
{
    return read_choice(call, object, name, words, true, otherwise);
}

/* --- objects and arrays --- */

const struct stampd_json *stampd_read_object(struct stampd_call *call, const struct stampd_json *object,
                                             const char *name)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    if (value && value->kind == JSON_OBJECT)
        return value_of(value);
    wrong(call, json_of(object), name, "An object is expected.");
    return value_of(&no_object);
}

const struct stampd_json *stampd_read_array(struct stampd_call *call, const struct stampd_json *object,
                                            const char *name, size_t least, size_t most)
{
    const struct json *value = module_read_find(call, json_of(object), name);
    if (value && value->kind == JSON_ARRAY && value->count >= least && value->count <= most)
        return value_of(value);
    wrong(call, json_of(object), name,
          arena_printf(module_try_arena(call), "An array of %zu to %zu elements is expected.", least, most));
    return value_of(&no_array);
}
