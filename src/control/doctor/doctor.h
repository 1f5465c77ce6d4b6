/* doctor: what the parts of `stampctl doctor` share: the report, one line a finding. */
#ifndef STAMPD_CONTROL_DOCTOR_DOCTOR_H
#define STAMPD_CONTROL_DOCTOR_DOCTOR_H

#include "control/control.h"

struct doctor {
    struct control *control; /* with settings */
    bool is_json, is_well;   /* well: nothing has been found to be wrong */
    int64_t free_percent;    /* a disk should have so much free */
};

/* What should be changed soon, or what is wrong now. */
enum doctor_kind { DOCTOR_WARN, DOCTOR_FAIL };

/* Prints OK and `good` if it is well, else the kind and `bad`, which says what to do. */
void doctor_find(struct doctor *doctor, enum doctor_kind kind, bool is_well, const char *good,
                 const char *bad);

/* Programs, limits, files, disks and the clock of this host. */
void doctor_check_host(struct doctor *doctor);
/* PostgreSQL's settings, standbys and archive, and the tasks of each namespace; connects as administrator. */
void doctor_check_databases(struct doctor *doctor);

#endif
