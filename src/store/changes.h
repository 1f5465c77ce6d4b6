/* changes: which statements change rows, and which of them may be repeated (changes_table.h). */
#ifndef STAMPD_STORE_CHANGES_H
#define STAMPD_STORE_CHANGES_H

#include "base/base.h"
#include "store/statements.h"

/* May the statement be run again when its session was lost?  It reads, or is upkeep. */
bool changes_are_repeated(enum statement statement);

#endif
