/* Every step at which a process can be made to die (setting debug_die_at), once, in the order of events.
 * POINT(name, word, what has been done when it dies there) */
/* clang-format off */
/* a commit: freshness.md 2 */
POINT(COMMIT_CONNECTED, "commit-connected", "there is a session, nothing is noted")
POINT(COMMIT_BEGUN, "commit-begun", "stamps_begin: the entry names the database")
POINT(COMMIT_MARK, "commit-mark", "stamps_mark: one more slot is marked")
POINT(COMMIT_MARKED, "commit-marked", "stamps_mark: all are")
POINT(COMMIT_QUEUED, "commit-queued", "store_commit: the statements were given to the connection, without the end of their transaction")
POINT(PIPELINE_SENT, "pipeline-sent", "pg_pipeline_run: all was sent, no answer was read (a commit, or loads)")
POINT(COMMIT_ANSWERED, "commit-answered", "store_commit: the server has said that it is committed")
POINT(PUBLISH, "publish", "stamps_publish: one more stamp has moved (a commit, or the herald)")
POINT(COMMIT_PUBLISHED, "commit-published", "stamps_publish: all have")
POINT(SHELF_LOCKED, "shelf-locked", "shelf_put: a bucket of the shelf is locked")
POINT(SHELF_WRITTEN, "shelf-written", "shelf_put: the copy is written, the bucket still locked")
POINT(COMMIT_KEPT, "commit-kept", "keep_written: the written copies are in the cache")
POINT(COMMIT_REFUSED, "commit-refused", "store_commit: the server has said that nothing is committed")
POINT(UNMARK, "unmark", "stamps_unmark: one more mark is cleared")
POINT(COMMIT_UNMARKED, "commit-unmarked", "stamps_unmark: all are")
POINT(COMMIT_ENDED, "commit-ended", "stamps_end: the entry names nothing")
POINT(REPLY_COMPOSED, "reply-composed", "the answer is ready, nothing of it was sent")
POINT(REPLY_SENT, "reply-sent", "the answer was sent")
/* a commit of unknown outcome */
POINT(UNKNOWN_BEGUN, "unknown-begun", "settle_unknown: the copies are dropped")
POINT(UNKNOWN_CONNECTED, "unknown-connected", "settle_unknown: the old session is gone")
POINT(UNKNOWN_SETTLED, "unknown-settled", "settle_unknown: as if committed, and ended")
/* open(ns) */
POINT(SESSION_CONNECTED, "session-connected", "session_open: connected, nothing was asked")
POINT(SESSION_ENDED_OTHERS, "session-ended-others", "session_open: the sessions in the way were told to end")
POINT(SESSION_LOCKED, "session-locked", "session_open: the lock is held")
POINT(SESSION_CLEAN, "session-clean", "session_open: former generations are said to be gone")
POINT(SESSION_OPENED, "session-opened", "session_open: all statements are prepared")
/* heir(number) */
POINT(HEIR_BEGUN, "heir-begun", "session_inherit: nothing")
POINT(HEIR_LOCKED, "heir-locked", "session_inherit: the former session is gone")
POINT(HEIR_MOVED, "heir-moved", "stamps_sweep: one more stamp has moved, its mark is still set")
POINT(HEIR_UNMARKED, "heir-unmarked", "stamps_sweep: and the mark is cleared")
POINT(HEIR_SWEPT, "heir-swept", "stamps_sweep: all slots are, the entry still names the database")
POINT(HEIR_ENDED, "heir-ended", "stamps_sweep: the entry names nothing, the heir has not ended")
/* the herald */
POINT(HERALD_LISTENS, "herald-listens", "the herald listens, no stamp has moved")
POINT(HERALD_HEARD, "herald-heard", "the herald was told of a change, no stamp has moved")
/* the master */
POINT(SEGMENT_NUMBERED, "segment-numbered", "segment_open: the next generation is written, the segment is empty")
POINT(SEGMENT_MADE, "segment-made", "segment_open: it is made, its lock is still exclusive")
POINT(INSTANCE_NUMBERED, "instance-numbered", "instance_start: the instance's file is locked, it has no entry")
POINT(INSTANCE_ENTRY, "instance-entry", "stamps_take_entries: one more entry is taken")
POINT(MASTER_FORKED, "master-forked", "a child runs, nothing is noted of it")
POINT(MASTER_REAPED, "master-reaped", "a worker is gone, its entry is held")
POINT(MASTER_DIRTY, "master-dirty", "a worker is gone, its entry is in doubt")
POINT(MASTER_HEIR_GONE, "master-heir-gone", "an heir has ended, nothing is noted of it")
POINT(MASTER_CLAIMED, "master-claimed", "an instance that is gone is claimed, no entry was looked at")
POINT(MASTER_RELEASED, "master-released", "stamps_release_entry: it is free, and still of that instance")
/* clang-format on */
