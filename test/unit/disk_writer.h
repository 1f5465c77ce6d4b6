/* disk_writer: a process that has the right to write records to the disk, and does not go on; for children.
 */
#ifndef STAMPD_TEST_DISK_WRITER_H
#define STAMPD_TEST_DISK_WRITER_H

#include "records/records.h"

/* As in the middle of its write: stops the process (SIGSTOP), and gives the right back when it goes on. */
void disk_writer_stand_still(struct records *records);

#endif
