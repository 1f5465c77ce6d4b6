/* map: the list is compared with the file, so that nginx reloads only when it has changed. */
#include "control/nginx/map.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process/subprocess.h"
#include "control/nginx/homes.h"
#include "control/message.h"

struct bytes map_compose(struct arena *arena, const struct namespace_conf *confs, size_t count,
                         const char *but)
{
    struct builder builder = {0};
    builder_add_text(&builder, "# Namespaces and their databases; written by stampctl, overwritten by it.\n");
    for (size_t i = 0; i < count; i++)
        if (*confs[i].database && (!but || strcmp(confs[i].code, but) != 0))
            builder_printf(&builder, "%s%s %s;\n", homes_escape(confs[i].code), confs[i].code,
                           confs[i].database);
    return builder_take(&builder, arena);
}

const char *map_path(struct control *control, const struct map_options *options)
{
    if (options->path)
        return options->path;
    const char *slash = strrchr(control->config, '/');
    return slash ? arena_printf(control->arena, "%.*s/namespaces.map", (int)(slash - control->config),
                                control->config)
                 : "namespaces.map";
}

static bool reload_nginx(struct control *control, const char *path)
{
    struct bytes text;
    int64_t pid;
    if (!control_read_file(control->arena, path, &text))
        return false;
    while (text.size && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == ' '))
        text.size--;
    if (!bytes_to_i64(text, &pid) || pid < 2 || pid > INT32_MAX)
        return message_refuse("%s: expected the process id of nginx", path);
    if (kill((pid_t)pid, SIGHUP) != 0)
        return message_refuse("nginx, process %lld: %s", (long long)pid, strerror(errno));
    return true;
}

/* Does the file have this text already?  Then nginx needs no reload, which replaces all its processes. */
static bool is_written(struct control *control, const char *path, struct bytes text)
{
    struct bytes present;
    return access(path, R_OK) == 0 && control_read_file(control->arena, path, &present) &&
           bytes_equal(present, text);
}

static bool run_reload(const char *command)
{
    const char *const words[] = {"/bin/sh", "-c", command, NULL};
    const int status = subprocess_run(&(const struct subprocess_work){.words = words});
    return status == 0 ||
           message_refuse("nginx_reload = %s: failed (status %d); the map is written, nginx has not read it",
                          command, status);
}

bool map_write(struct control *control, const struct map_options *options, const struct namespace_conf *confs,
               size_t count, const char *but)
{
    const char *path = map_path(control, options), *command = control->settings.nginx_reload;
    struct bytes map = map_compose(control->arena, confs, count, but),
                 homes = homes_compose(control->arena, &control->settings, confs, count, but);
    const char *beside = homes_path(control->arena, path);
    bool is_known = is_written(control, path, map) && is_written(control, beside, homes);
    if (!is_known && (!control_write_file(control->arena, path, map, 0644) ||
                      !control_write_file(control->arena, beside, homes, 0644)))
        return false;
    if (options->nginx_pid)
        return reload_nginx(control, options->nginx_pid);
    return is_known || !*command || run_reload(command);
}
