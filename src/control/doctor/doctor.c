/* doctor: OK, WARN or FAIL, for people or programs. */
#include "control/doctor/doctor.h"

#include <stdio.h>

#include "control/record.h"

void doctor_find(struct doctor *doctor, enum doctor_kind kind, bool is_well, const char *good,
                 const char *bad)
{
    const char *word = is_well ? "OK" : kind == DOCTOR_WARN ? "WARN" : "FAIL", *text = is_well ? good : bad;
    struct record record = {0};
    if (doctor->is_json) {
        record_add_word(&record, "result", word);
        record_add_word(&record, "text", text);
        record_print(&record);
    } else {
        printf("%-4s  %s\n", word, text);
    }
    doctor->is_well = doctor->is_well && (is_well || kind == DOCTOR_WARN);
}
