/* fuzz_form: form_read, the arguments of a request to a queue manager.  Lines: the query string, the content
 * type; then the body.  Texts are UTF-8, param an object, a key is never taken from the address; what was
 * read as JSON or pairs, written as JSON, is read as the same. */
#include "fuzz.h"

#include "queue/form.h"

const char fuzz_target[] = "form";

static struct bytes take_line(struct bytes *rest)
{
    const char *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
    struct bytes line = {rest->data, end ? (size_t)(end - rest->data) : rest->size};
    size_t taken = line.size + (end ? 1 : 0);
    *rest = (struct bytes){rest->data + taken, rest->size - taken};
    return line;
}

static void add_member(struct builder *object, const char *name, struct bytes text)
{
    if (!text.data)
        return;
    builder_printf(object, "%s\"%s\":", object->size > 1 ? "," : "", name);
    json_add_string(object, text);
}

static void check_written(struct arena *arena, const struct form *form)
{
    struct builder object = {0};
    struct form again;
    builder_add_text(&object, "{");
    add_member(&object, "op", form->op);
    add_member(&object, "key", form->key);
    if (form->param) {
        builder_printf(&object, "%s\"param\":", object.size > 1 ? "," : "");
        builder_add_bytes(&object, form->param->text);
    }
    builder_add_text(&object, "}");
    enum fault fault =
        form_read(arena, NO_BYTES, BYTES("application/json; charset=utf-8"), builder_bytes(&object), &again);
    if (fault) /* deeper or longer by what stands around it */
        assert(form->param && fault != FAULT_AARG);
    else
        assert(bytes_equal(again.op, form->op) && bytes_equal(again.key, form->key) &&
               !again.param == !form->param &&
               (!form->param || bytes_equal(again.param->text, form->param->text)));
    builder_free(&object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    struct bytes rest = {(const char *)data, size};
    struct bytes query = size ? take_line(&rest) : NO_BYTES, type = size ? take_line(&rest) : NO_BYTES;
    struct form form;
    enum fault fault = form_read(arena, query, type, rest, &form);
    if (fault == FAULT_NONE) {
        assert(bytes_is_utf8(form.op) && bytes_is_utf8(form.key));
        assert(!form.param || form.param->kind == JSON_OBJECT);
        assert(!form.key.data || rest.size);
        check_written(arena, &form);
    }
    arena_destroy(arena);
    return 0;
}
