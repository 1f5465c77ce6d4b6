/* cmd_ns: the subcommands of `stampctl ns`, shared with their dispatcher only. */
#ifndef STAMPD_CONTROL_CMD_NS_H
#define STAMPD_CONTROL_CMD_NS_H

#include "control/ns_registry.h"

/* The options of every command that writes the map. */
#define NS_MAP_LINES(map)                                                                                    \
    {.name = "map",                                                                                          \
     .argument = "FILE",                                                                                     \
     .help = "Write nginx's map of namespaces to FILE (default: namespaces.map beside the settings).",       \
     .text = &(map)->path},                                                                                  \
    {                                                                                                        \
        .name = "nginx-pid", .argument = "FILE", .help = "Make nginx reload; FILE has its process id.",      \
        .text = &(map)->nginx_pid                                                                            \
    }

/* Is it valid as the code of a namespace?  Reports why not. */
MUST_USE bool ns_check_code(const char *command, const char *code);
/* Connects to a database that belongs to no namespace, to create and drop others; on failure reports why. */
MUST_USE bool ns_open_maintenance(struct control *control, struct pg **pg_r);
/* The same, under a lock that excludes other such stampctl processes until the end of the program. */
MUST_USE bool ns_open_alone(struct control *control, struct pg **pg_r);
/* Runs `before` + the database's name, quoted + `after`. */
MUST_USE bool ns_execute_on(struct pg *pg, const char *before, const char *database, const char *after);
MUST_USE bool ns_database_exists(struct control *control, struct pg *pg, const char *database,
                                 bool *exists_r);

int ns_create(struct control *control, int argc, char **argv);
int ns_drop(struct control *control, int argc, char **argv);
int ns_list(struct control *control, int argc, char **argv);

#endif
