/* trial: are the things there that the settings name: users, groups, time zone, modules, keys?  What
 * settings.h judges by the text alone is judged before. */
#ifndef STAMPD_OPERATION_TRIAL_H
#define STAMPD_OPERATION_TRIAL_H

#include "base/settings.h"

enum trial_level { TRIAL_GOOD, TRIAL_WARNING, TRIAL_WRONG };

/* One finding, one line. */
typedef void trial_listener(void *context, enum trial_level level, const char *text);

/* Tells what it finds of the settings read from `path`.  With `with_modules`, of a
 * program that has the functions of stampd.h, they are loaded, in a process of their own that
 * ends with it, and as the setting `user` when root asks: without one their code is not run, only looked at
 * as files.  Returns whether nothing was wrong. */
MUST_USE bool trial_run(const struct settings *settings, const char *path, bool with_modules,
                        trial_listener *tell, void *context);

#endif
