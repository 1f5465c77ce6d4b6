/* lineage: a word for each namespace grows with timeline and position. */
#include "segment/lineage.h"

#include "segment/slots.h"

/* Records of the log begin at multiples of 8 bytes. */
enum { POSITION_BITS = 50, POSITION_SHIFT = 3 };

static uint64_t mark_of(uint32_t timeline, uint64_t position)
{
    return (uint64_t)timeline << POSITION_BITS |
           ((position >> POSITION_SHIFT) & ((UINT64_C(1) << POSITION_BITS) - 1));
}

static void raise_timeline(_Atomic uint32_t *highest, uint32_t timeline)
{
    uint32_t present = atomic_load(highest);
    while (present < timeline && !atomic_compare_exchange_weak(highest, &present, timeline))
        ;
}

static void raise_mark(struct lineage_record *record, uint64_t mark)
{
    uint64_t present = atomic_load(&record->mark);
    while (present < mark && !atomic_compare_exchange_weak(&record->mark, &present, mark))
        ;
}

void lineage_note(struct segment *segment, int ns, uint32_t timeline, uint64_t position)
{
    raise_mark(&segment->lineage->records[ns], mark_of(timeline, position));
}

void lineage_drop(struct segment *segment)
{
    atomic_fetch_add(&segment->lineage->drops, 1); /* first: who sees a moved stamp drops its copies, too */
    slots_move_all(segment);
}

/* The log has all up to `end`, and nothing behind it. */
static void lineage_judge(struct lineage_record *record, uint64_t mark, uint64_t end)
{
    uint64_t position = (mark & ((UINT64_C(1) << POSITION_BITS) - 1)) << POSITION_SHIFT;
    if (!mark || position < end)
        return;
    atomic_store(&record->has_lost, 1); /* first: a mark of zero has lost nothing */
    atomic_compare_exchange_strong(&record->mark, &mark, 0);
}

uint64_t lineage_mark(const struct segment *segment, int ns)
{
    return atomic_load(&segment->lineage->records[ns].mark);
}

enum lineage_verdict lineage_meet(struct segment *segment, int ns, const struct lineage_met *met)
{
    int number = namespaces_cell(segment, ns);
    struct lineage *lineage = segment->lineage;
    struct lineage_cell *cell = &lineage->cells[number];
    uint64_t system = 0;
    atomic_compare_exchange_strong(&cell->system, &system, met->system);
    bool is_other = system && system != met->system;
    uint32_t known = atomic_load(&cell->settled);
    if (!is_other && atomic_load(&cell->timeline) > met->timeline)
        return LINEAGE_FORMER;
    if (!is_other && known == met->timeline) {
        if (met->mark >= mark_of(known, 0)) /* unless it has gone back by itself, nothing is lost */
            lineage_judge(&lineage->records[ns], met->mark, met->position);
        return LINEAGE_SAME;
    }
    /* After several failovers nobody knows where the first one left the former history. */
    uint64_t end = !is_other && known + 1 == met->timeline ? met->start : 0;
    for (int each = 0; each < NAMESPACES_MOST; each++) {
        uint64_t mark = lineage_mark(segment, each);
        if (mark && namespaces_cell(segment, each) != number)
            continue;
        if (is_other || mark < mark_of(met->timeline, 0)) /* else of a commit after the failover */
            lineage_judge(&lineage->records[each], mark, end);
    }
    if (is_other) { /* it may have a lower one */
        atomic_store(&cell->settled, 0);
        atomic_store(&cell->timeline, met->timeline);
    }
    /* Of the first history that the host meets there is no copy yet: whoever has read has met it before. */
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&cell->timeline, &none, met->timeline)) {
        raise_timeline(&cell->timeline, met->timeline); /* first: who drops copies has no old session */
        lineage_drop(segment);
    }
    raise_timeline(&cell->settled, met->timeline);
    if (is_other)
        atomic_store(&cell->system, met->system);
    return known ? LINEAGE_NEW : LINEAGE_SAME;
}

bool lineage_has_lost(struct segment *segment, int ns, int64_t epoch)
{
    struct lineage_record *record = &segment->lineage->records[ns];
    int64_t named = (int64_t)((uint64_t)epoch + 1); /* the database may hold any number */
    int64_t known = atomic_exchange(&record->epoch, named);
    if (!atomic_load(&record->has_lost))
        return false;
    if (!known || known == named)
        return true;
    atomic_store(&record->has_lost, 0);
    lineage_drop(segment);
    return false;
}

bool lineage_is_lost(const struct segment *segment, int ns)
{
    return atomic_load(&segment->lineage->records[ns].has_lost);
}

size_t lineage_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct lineage);
}

void lineage_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->lineage = memory;
}
