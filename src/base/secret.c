/* secret: read once, erased at the end. */
#include "base/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

enum { SECRET_MAX = 1000 };

static bool is_open(const struct stat *status)
{
    return (status->st_mode & (S_IROTH | S_IWOTH)) != 0;
}

static void report_open(const char *setting, const char *path, char *problem, size_t problem_size)
{
    snprintf(problem, problem_size, "%s = %s: any user may read or write it", setting, path);
}

bool secret_is_closed(const char *setting, const char *path, char *problem, size_t problem_size)
{
    struct stat status;
    if (stat(path, &status) != 0)
        snprintf(problem, problem_size, "%s = %s: %m", setting, path);
    else if (is_open(&status))
        report_open(setting, path, problem, problem_size);
    else
        return true;
    return false;
}

bool secret_read(struct secret *secret, const char *setting, const char *path, char *problem,
                 size_t problem_size)
{
    char line[SECRET_MAX + 2] = "";
    struct stat status;
    secret->text = NULL;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &status)) {
        snprintf(problem, problem_size, "%s = %s: %m", setting, path);
        if (file)
            fclose(file);
        return false;
    }
    setvbuf(file, NULL, _IONBF, 0); /* leaves no copy in a buffer */
    bool is_read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    line[strcspn(line, " \t\r\n")] = '\0';
    if (is_open(&status))
        report_open(setting, path, problem, problem_size);
    else if (!is_read || !*line || strlen(line) > SECRET_MAX)
        snprintf(problem, problem_size, "%s = %s: its first line is no key", setting, path);
    else if (!(secret->text = strdup(line)))
        log_fatal("out of memory");
    explicit_bzero(line, sizeof line);
    return secret->text != NULL;
}

void secret_erase(struct secret *secret)
{
    if (secret->text)
        explicit_bzero(secret->text, strlen(secret->text));
    free(secret->text);
    secret->text = NULL;
}

struct bytes secret_bearer(struct bytes header)
{
    static const char scheme[] = "Bearer";
    size_t size = sizeof scheme - 1;
    if (header.size < size || strncasecmp(header.data, scheme, size) != 0 ||
        (header.size > size && header.data[size] != ' '))
        return NO_BYTES;
    while (size < header.size && header.data[size] == ' ')
        size++;
    return (struct bytes){header.data + size, header.size - size};
}
