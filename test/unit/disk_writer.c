/* disk_writer: takes the lock that records_save.c takes. */
#include "disk_writer.h"

#include <signal.h>

#include "child.h"
#include "records/records_private.h"

void disk_writer_stand_still(struct records *records)
{
    DEMAND(robust_lock_take(&records->head->save_lock, 0) == ROBUST_LOCK_TAKEN);
    DEMAND(raise(SIGSTOP) == 0);
    robust_lock_release(&records->head->save_lock);
}
