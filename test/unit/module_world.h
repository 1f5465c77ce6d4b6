/* module_world: a worker's worker context over rows in memory, and a module in it whose operations do what
 * the test at hand wants. */
#ifndef STAMPD_TEST_MODULE_WORLD_H
#define STAMPD_TEST_MODULE_WORLD_H

#include "operation/module/module.h"
#include "worker_context_world.h"

/* The module `trial` has operations Trial (public, with afterwork), Look (read-only), Brief (1 s) and Rule
 * (for administrators), and the class Firm: singleton Sta, items Adh, raw items Raw. */
extern const struct stampd_document_class classes[];
extern enum stampd_outcome (*work)(struct stampd_call *call), (*afterwork)(struct stampd_call *call);
extern int works; /* how often work was run in the last call */
enum stampd_outcome do_work(struct stampd_call *call);
enum stampd_outcome nothing(struct stampd_call *call);
enum stampd_outcome fetch_and_change(struct stampd_call *call); /* deletes Firm a */

/* For the group, and before each test: the namespace is closed.  After each: worker_context_world_close. */
int open_world(void **state);
int start_world(void **state);

/* Runs an operation; `param` is the JSON text of the argument or NULL, built as shallow as the server does.
 */
enum fault run_call(const char *operation, const char *param, struct call call);
/* Runs Trial with that work. */
enum fault run(enum stampd_outcome (*function)(struct stampd_call *), const char *param);
void expect_fault(enum fault fault, const char *argument);
void expect_body(const char *text);

#endif
