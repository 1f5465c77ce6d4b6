/* The parts of a commit: PART(NAME, "statements").  Their order is the order of the pipeline, and so the
 * order of locks; change it only together with every other writer (doc/explanation/commit.md, whose table
 * lists the same parts in the same order: scripts/check-docs compares the two).
 *
 * The statements are those of statements_table.h that the part may send; x_…: side tables, whose statements
 * depend on the schema. */
/* clang-format off */
PART(idempotency, "idempotency")
PART(spool, "spool_note")
PART(task_ends, "task_end_one task_end_taken task_end task_back_taken task_step cron_end")
PART(running_cancels, "task_cancel_for")
PART(absences, "absent")
PART(core, "core_one core")
PART(births, "born")
PART(wipe, "wipe")
PART(purge, "purge")
PART(copies, "copy_lock copy_write")
PART(side_tables, "x_…_wipe x_…_write")
PART(members, "members")
PART(owners, "owned_write")
PART(copy_notes, "copy_done copy_note")
PART(matches, "subscription_match")
PART(task_quota, "task_admit")
PART(waiting_cancels, "task_cancel_for")
PART(new_tasks, "task_make_one task_make_plain task_make task_next")
PART(task_takes, "task_take_beside")
PART(old_answers, "idempotency_purge")
PART(old_spools, "spool_purge")
/* clang-format on */
