# The models of the freshness protocol, checked by spin; skipped with a word where there is none.
HOUSE_CHECKS += test/model/run
EXTRA_DIST += test/model/README.md test/model/cases test/model/explored test/model/agenda.pml test/model/lease.pml test/model/cluster.pml test/model/takeover.pml test/model/delta.pml \
	test/model/freshness.pml test/model/relay.pml test/model/replication.pml test/model/values.pml test/model/restart.pml \
	test/model/primaries.pml test/model/stamp.pml
