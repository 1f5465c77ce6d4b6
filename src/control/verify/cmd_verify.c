/* cmd_verify: `stampctl verify`: an archive, a namespace, or one against the other. */
#include "control/verify/archive_comparison.h"

#include <stdio.h>

#include "control/archive/archive_key.h"
#include "control/verify/ns_verifier.h"
#include "control/message.h"

static void cmd_verify_report(const char *path, const struct archive_contents *contents)
{
    printf("%s: whole%s: %.*s as of %lld, %lld documents, %lld deleted ones, %lld items, %zu files%s\n", path,
           contents->key.data ? ", encrypted" : "", (int)contents->ns.size, contents->ns.data,
           (long long)contents->at, (long long)contents->sum.documents, (long long)contents->sum.deleted,
           (long long)contents->sum.items, contents->files.count,
           contents->is_increment ? ", an increment" : "");
}

static int cmd_verify_end(struct findings *findings, const char *whole)
{
    arena_destroy(findings->arena);
    if (findings->count)
        message_print("%lld differences", (long long)findings->count);
    else
        printf("%s\n", whole);
    return findings->count ? CONTROL_FAILED : CONTROL_DONE;
}

static int verify_namespace(struct control *control, const struct ns_target *target)
{
    const char *code = target->conf->code;
    struct ns_verification result = {.findings = {.arena = arena_create("findings")}};
    bool is_done = ns_verifier_run(control, target, &result);
    if (!is_done) {
        arena_destroy(result.findings.arena);
        return CONTROL_FAILED;
    }
    printf("%s: %lld documents, %lld deleted ones, %lld items, %lld files of attachments, %lld bytes\n", code,
           (long long)result.sum.documents, (long long)result.sum.deleted, (long long)result.sum.items,
           (long long)result.files, (long long)result.bytes);
    if (result.unused || result.unregistered)
        printf("%s: no attachment has %lld files; %lld more, of %lld bytes, are not registered: the server "
               "removes them\n",
               code, (long long)result.unused, (long long)result.unregistered,
               (long long)result.unregistered_bytes);
    return cmd_verify_end(&result.findings, "everything is as it should be");
}

static int cmd_verify_compare(struct control *control, const struct ns_target *target, const char *path,
                              const struct archive_contents *contents)
{
    const char *code = target->conf->code;
    struct archive_comparison result = {.findings = {.arena = arena_create("findings")}};
    if (!archive_comparison_run(control, target, path, contents, &result)) {
        arena_destroy(result.findings.arena);
        return CONTROL_FAILED;
    }
    printf("%s: %lld documents are the same, %lld differ, %lld are missing, %lld are not in the archive; "
           "%lld of "
           "%lld files are there\n",
           code, (long long)result.same, (long long)result.other, (long long)result.missing,
           (long long)result.more, (long long)(result.files - result.missing_files), (long long)result.files);
    return cmd_verify_end(&result.findings, "the namespace has what the archive has");
}

static int cmd_verify_verify(struct control *control, const char *path, const char *code,
                             const char *key_path)
{
    struct archive_contents contents;
    struct ns_target target;
    struct bytes key;
    if (!archive_key_read(control, key_path, &key) || (code && !control_load_settings(control)))
        return CONTROL_FAILED;
    if (path && !archive_verify(control->arena, path, key, true, &contents))
        return CONTROL_FAILED;
    if (path)
        cmd_verify_report(path, &contents);
    if (!code)
        return CONTROL_DONE;
    if (!ns_registry_connect(control, code, &target))
        return CONTROL_FAILED;
    return path ? cmd_verify_compare(control, &target, path, &contents) : verify_namespace(control, &target);
}

int control_verify(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "verify",
        "[ARCHIVE]",
        0,
        1,
        "Check an archive, a namespace, or one against the other.",
        "ARCHIVE: it is whole and was not altered.  --ns CODE: the volumes of its documents, its references "
        "to "
        "files, and\n"
        "the bytes of every file.  Both: what the namespace has other than the archive.  Exit status 1: "
        "something differs.\n"};
    const char *key_path = NULL, *code = NULL;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        {.name = "ns", .argument = "CODE", .help = "Check this namespace.", .text = &code},
        ARCHIVE_KEY_LINE(&key_path)};
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    if (!count && !code) {
        message_print("verify: expected ARCHIVE, --ns CODE, or both");
        return CONTROL_WRONG;
    }
    return cmd_verify_verify(control, count ? words[0] : NULL, code, key_path);
}
