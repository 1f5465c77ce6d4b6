/* replay: runs a fuzz target on its corpus, or on the files named, without libFuzzer: for make check.
 * An input that breaks a property ends the program by assert or by a sanitizer. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void fail(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

/* Memory of exactly the file's size, so that a sanitizer sees a byte read too far. */
static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    long end = ftell(file);
    if (end < 0)
        fail(path);
    size_t size = (size_t)end;
    rewind(file);
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size)
        fail(path);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort);
    if (count < 0)
        fail(folder);
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        assert(length > 0 && (size_t)length < sizeof path);
        replay(path);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argument_count, char **arguments)
{
    int count = argument_count - 1;
    for (int i = 1; i < argument_count; i++)
        replay(arguments[i]);
    if (!count) {
        const char *source = getenv("srcdir"); /* make check tells */
        char folder[4096];
        snprintf(folder, sizeof folder, "%s/test/fuzz/corpus/%s", source ? source : ".", fuzz_target);
        count = replay_folder(folder);
    }
    printf("%s: %d inputs\n", fuzz_target, count);
    return count ? 0 : 1;
}
