/* cmd_ns: the subcommands of `stampctl ns`, shared with their dispatcher only. */
#ifndef STAMPD_CONTROL_NS_CMD_NS_H
#define STAMPD_CONTROL_NS_CMD_NS_H

#include "control/nginx/map.h"
#include "control/ns/ns_registry.h"
#include "edge/json/json.h"

/* The options of every command that writes the map. */
#define NS_MAP_LINES(map)                                                                                    \
    OPTION_TEXT("map", "FILE", &(map)->path,                                                                 \
                "Write nginx's map of namespaces to FILE (default: namespaces.map beside the settings)."),   \
    {                                                                                                        \
        .name = "nginx-pid", .argument = "FILE", .help = "Make nginx reload; FILE has its process id.",      \
        .text = &(map)->nginx_pid                                                                            \
    }

int cmd_ns_create(struct control *control, int argc, char **argv);
int cmd_ns_drop(struct control *control, int argc, char **argv);
int cmd_ns_keys(struct control *control, int argc, char **argv);
int cmd_ns_list(struct control *control, int argc, char **argv);
int cmd_ns_move(struct control *control, int argc, char **argv);
int cmd_ns_quotas(struct control *control, int argc, char **argv);
int cmd_ns_reads(struct control *control, int argc, char **argv);
int cmd_ns_readers(struct control *control, int argc, char **argv);
int cmd_ns_spread(struct control *control, int argc, char **argv);
int cmd_ns_records(struct control *control, int argc, char **argv);
int cmd_ns_workers(struct control *control, int argc, char **argv);

/* The word of a command, on or off.  False: it is another one, and reported. */
MUST_USE bool cmd_ns_read_switch(const char *name, const char *word, bool *is_on_r);
/* Sets a member of a namespace's configuration to a JSON value, NO_BYTES: removes it.  False: failed, and
 * reported. */
MUST_USE bool cmd_ns_set(struct control *control, const char *code, const char *member, struct bytes value);
/* Makes the next value of a member, in the arena, from the present one (NULL: absent); NO_BYTES: removes it.
 * False: it was reported why not. */
typedef bool cmd_ns_editor(struct control *control, const struct json *present, void *context,
                           struct bytes *value_r);
/* Sets a member to what `edit` makes of it, while no other stampctl changes it.  False: failed, and reported.
 */
MUST_USE bool cmd_ns_edit(struct control *control, const char *code, const char *member, cmd_ns_editor *edit,
                          void *context);
/* Sets the state and the message about it (NULL: none), with connections of its own: they hold a lock that
 * excludes other stampctl processes.  False: failed, and reported. */
MUST_USE bool cmd_ns_set_state(const struct control *control, const char *code, enum ns_state state,
                               const char *message);
/* Names the database of a namespace, NULL: that it has, and returns when all servers obey and nginx's map has
 * it.  False: failed, and reported. */
MUST_USE bool cmd_ns_place(const struct control *control, const char *code, const char *database,
                           const struct map_options *map);
/* Is the database none of another namespace's?  False: reported. */
MUST_USE bool cmd_ns_is_free(struct control *control, const char *database, const char *code);
/* Makes the database of a namespace, or completes it: role, rights, schema; encrypted when `id_classes` is
 * not NULL, the classes with encrypted ids, separated by commas.  False: failed, and reported. */
MUST_USE bool cmd_ns_create_database(struct control *control, const char *code, const char *database,
                                     const char *id_classes);
/* Drops a database of a namespace that it has left, with its files.  False: failed, and reported. */
MUST_USE bool cmd_ns_drop_database(struct control *control, const char *code, const char *database);
/* A member of a namespace's configuration, with its own members or elements; NULL: absent.  False: failed,
 * and reported. */
MUST_USE bool cmd_ns_read(struct control *control, const char *code, const char *member,
                          const struct json **value_r);

#endif
