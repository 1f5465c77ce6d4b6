/* cmd_verify: `stampctl verify`: an archive against itself. */
#include "control/archive/archive_reader.h"

#include <stdio.h>

#include "control/archive/archive_key.h"
#include "control/control.h"

static void report(const char *path, const struct archive_contents *contents)
{
    printf("%s: whole%s: %.*s as of %lld, %lld documents, %lld deleted ones, %lld items, %zu files%s\n", path,
           contents->key.data ? ", encrypted" : "", (int)contents->ns.size, contents->ns.data,
           (long long)contents->at, (long long)contents->sum.documents, (long long)contents->sum.deleted,
           (long long)contents->sum.items, contents->files.count,
           contents->is_increment ? ", an increment" : "");
}

int control_verify(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "verify", "ARCHIVE", 1, 1, "Check that an archive is whole and was not altered.", NULL};
    const char *key_path = NULL;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), ARCHIVE_KEY_LINE(&key_path)};
    struct bytes key;
    struct archive_contents contents;
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    if (!archive_key_read(control, key_path, &key) ||
        !archive_verify(control->arena, words[0], key, true, &contents))
        return CONTROL_FAILED;
    report(words[0], &contents);
    return CONTROL_DONE;
}
