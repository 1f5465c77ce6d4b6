/* settings_check: checks that the things named in the settings exist: users, groups, time zone, modules,
 * keys. settings.h has checked the text alone before. */
#ifndef STAMPD_OPERATION_SETTINGS_CHECK_H
#define STAMPD_OPERATION_SETTINGS_CHECK_H

#include "base/settings.h"

enum settings_check_level { SETTINGS_CHECK_GOOD, SETTINGS_CHECK_WARNING, SETTINGS_CHECK_WRONG };

/* One finding, one line. */
typedef void settings_check_listener(void *context, enum settings_check_level level, const char *text);

/* Reports its findings about the settings read from `path`.  With `with_modules`, in a program that has the
 * functions of stampd.h, modules are loaded in a child process that ends afterwards.  If root runs the check,
 * the child runs as the setting `user`; if that is empty, the modules' code is not run, and they are only
 * checked as files.  Returns whether nothing was wrong. */
MUST_USE bool settings_check_run(const struct settings *settings, const char *path, bool with_modules,
                                 settings_check_listener *report, void *context);

/* The same for a command line of `program`: warnings and errors go to standard error, "the settings are good"
 * to standard output. Returns the exit status. */
MUST_USE int settings_check_print(const struct settings *settings, const char *path, bool with_modules,
                                  const char *program);

#endif
