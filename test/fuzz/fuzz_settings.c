/* fuzz_settings: settings_load on any file.  What is accepted lies within the table's limits; what is refused
 * is explained in one line. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/settings.h"

const char fuzz_target[] = "settings";

static void check_settings(const struct settings *settings)
{
#define TEXT(name, value, description)          assert(settings->name);
#define CHOICE(name, value, words, description) assert(settings->name >= 0 && settings->name < 4);
#define NUMBER(name, value, least, most, unit, description)                                                  \
    assert(settings->name >= (least) && settings->name <= (most));
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("settings", MFD_CLOEXEC);
        assert(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    bool is_written = ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size;
    assert(is_written);

    struct settings settings;
    char problem[256];
    memset(problem, 'x', sizeof problem);
    if (settings_load(&settings, path, problem, sizeof problem)) {
        check_settings(&settings);
        settings_free(&settings);
    } else {
        size_t length = strnlen(problem, sizeof problem);
        assert(length < sizeof problem && length > strlen(path));
        assert(strncmp(problem, path, strlen(path)) == 0);
    }
    return 0;
}
