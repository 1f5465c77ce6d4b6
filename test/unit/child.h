/* child: processes of a test that run a function, are awaited or killed; and a folder for their files. */
#ifndef STAMPD_TEST_CHILD_H
#define STAMPD_TEST_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* For children: no cmocka there.  Says what failed and ends the process with status 1. */
#define DEMAND(condition) child_demand((condition), #condition, __FILE__, __LINE__)
void child_demand(bool condition, const char *text, const char *file, int line);

/* Forks; the child runs `function(argument)` and ends with status 0.  It dies with its parent. */
pid_t child_start(void (*function)(void *argument), void *argument);
/* `count` children (at most 64) at once; each gets the address of its number, from 0.  Waits; fails the test
 * unless all end with status 0. */
void child_crowd(int count, void (*function)(void *number));
/* Waits; fails the test unless the child ended with status 0. */
void child_expect(pid_t pid);
/* kill -9, and waits. */
void child_kill(pid_t pid);

/* One byte from one process to another: a step that was reached. */
struct gate {
    int ends[2];
};
void gate_open(struct gate *gate);
void gate_pass(struct gate *gate);  /* says that the step is reached */
void gate_await(struct gate *gate); /* until it is; fails the process after some seconds */
void gate_close(struct gate *gate);

/* A new folder; removed with all its files by folder_remove. */
const char *folder_make(void);
const char *folder_path(const char *name); /* static text, overwritten by the next call */
void folder_remove(void);

#endif
