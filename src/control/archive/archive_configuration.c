/* archive_configuration: documents renamed, and merged into z. */
#include "control/archive/archive_configuration.h"

#include "control/archive/archive_batch.h"
#include "control/message.h"
#include "edge/json/json.h"
#include "model/namespace.h"
#include "model/rules/rules.h"

struct renaming {
    struct control *control;
    const struct ns_target *target;
    bool is_wrong; /* a member or a rule is malformed; it was reported */
};

bool archive_configuration_has(struct bytes name)
{
    static const struct bytes folder = BYTES("configuration/");
    return name.size > folder.size && memcmp(name.data, folder.data, folder.size) == 0;
}

/* What the archive sets, over what this namespace has of its own. */
static struct bytes archive_configuration_join(struct arena *arena, struct bytes own, struct bytes other)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct json_problem problem;
    struct json *root;
    if (json_read(arena, other, &limits, &root, &problem) != FAULT_NONE || root->kind != JSON_OBJECT)
        return own;
    for (const struct json *member = root->first; member; member = member->next)
        if (!bytes_equal(member->name, BYTES("database")) && !bytes_equal(member->name, BYTES("state")) &&
            !bytes_equal(member->name, BYTES("message")) && !bytes_equal(member->name, BYTES("encrypted")))
            own = namespace_set_json(arena, own, arena_copy(arena, member->name.data, member->name.size),
                                     member->text);
    return own;
}

static void archive_configuration_refuse(struct renaming *renaming, const char *item, const char *place,
                                         const char *problem)
{
    message_print(
        "the archive has a malformed configuration, which --no-configuration leaves out: %s%s%s: %s", item,
        *place ? ": " : "", place, problem);
    renaming->is_wrong = true;
}

/* As the server checks them: malformed rules allow nothing, a malformed member may make the namespace
 * read-only. */
static void archive_configuration_check(struct renaming *renaming, const struct archive_item *item)
{
    struct arena *arena = renaming->control->arena;
    struct rules *rules;
    struct rules_problem problem;
    const char *member, *expected;
    if (bytes_equal(item->class, BYTES("Conf"))) {
        expected = namespace_refuse_content(arena, renaming->target->conf->text, item->content, &member);
        if (expected)
            archive_configuration_refuse(renaming, "Conf", member, expected);
    }
    if (bytes_equal(item->class, BYTES("Rules")) && rules_read(arena, item->content, &rules, &problem))
        archive_configuration_refuse(renaming, "Rules", problem.path, problem.expected);
}

static void rename_one(void *context, struct archive_document *document)
{
    struct renaming *renaming = context;
    struct arena *arena = renaming->control->arena;
    struct bytes *id = &document->header.id;
    const char *slash = memchr(id->data, '/', id->size);
    size_t kept = slash ? (size_t)(id->data + id->size - slash) : 0;
    const char *name =
        arena_printf(arena, "%s%.*s", renaming->target->conf->code, (int)kept, slash ? slash : "");
    *id = bytes_of(name);
    if (!bytes_equal(document->header.class, BYTES("Namespace")))
        return;
    for (size_t i = 0; i < document->count; i++) {
        struct archive_item *item = &document->items[i];
        if (!item->content.data)
            continue;
        if (bytes_equal(item->class, BYTES("Conf")))
            item->content = archive_configuration_join(arena, renaming->target->conf->text, item->content);
        archive_configuration_check(renaming, item);
    }
}

bool archive_configuration_store(struct control *control, const struct ns_target *target, struct bytes lines)
{
    struct renaming renaming = {control, target, false};
    int64_t changed;
    struct archive_batch *batch = archive_batch_create(control, target->z, false);
    bool is_done = archive_batch_read(batch, lines, true);
    if (is_done) {
        archive_batch_each(batch, rename_one, &renaming);
        is_done = !renaming.is_wrong;
    }
    if (is_done) {
        enum fault fault = archive_batch_merge(batch, false, &changed);
        is_done = fault == FAULT_NONE;
        if (fault == FAULT_STALE)
            message_print("storing the configuration: %s", pg_message(target->z));
    }
    archive_batch_destroy(batch);
    return is_done && control_execute(target->z, "storing the configuration", "deallocate all");
}
