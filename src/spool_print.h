/* spool_print: what stamp-spool prints about records: JSON, a line each. */
#ifndef STAMPD_SPOOL_PRINT_H
#define STAMPD_SPOOL_PRINT_H

#include <stdbool.h>

#include "spool/stampd_spool.h"

void spool_print_series(const unsigned char *series);
/* `reason`: of a dead letter; NULL: it is none. */
void spool_print_record(const struct stampd_spool_record *record, const char *reason, bool has_param);
void spool_print_damage(const struct stampd_spool_record *record, const char *reason);

#endif
