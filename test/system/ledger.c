/* ledger: the graph of committed operations. */
#include "ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "model/document/draft.h"

enum { REPORTED = 10 }; /* violations printed of each kind */

struct page {
    _Alignas(64) size_t count;
    struct ledger_entry entries[];
};

struct ledger {
    int processes;
    size_t capacity, page_bytes;
    char *pages;
};

static struct page *page_of(const struct ledger *ledger, int process)
{
    return (struct page *)(void *)(ledger->pages + (size_t)process * ledger->page_bytes);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

struct ledger *ledger_create(int processes, size_t capacity)
{
    struct ledger *ledger = allocate(1, sizeof *ledger);
    ledger->processes = processes;
    ledger->capacity = capacity;
    ledger->page_bytes = (sizeof(struct page) + capacity * sizeof(struct ledger_entry) + 4095) / 4096 * 4096;
    ledger->pages = mmap(NULL, ledger->page_bytes * (size_t)processes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ledger->pages == MAP_FAILED)
        abort();
    return ledger;
}

void ledger_destroy(struct ledger *ledger)
{
    munmap(ledger->pages, ledger->page_bytes * (size_t)ledger->processes);
    free(ledger);
}

void ledger_clear(struct ledger *ledger)
{
    for (int process = 0; process < ledger->processes; process++)
        page_of(ledger, process)->count = 0;
}

bool ledger_is_full(const struct ledger *ledger, int process)
{
    return page_of(ledger, process)->count == ledger->capacity;
}

void ledger_add(struct ledger *ledger, int process, const struct ledger_entry *entry)
{
    struct page *page = page_of(ledger, process);
    assert(page->count < ledger->capacity);
    page->entries[page->count] = *entry;
    page->entries[page->count].process = process;
    page->count++;
}

/* --- judging ------------------------------------------------------------------------------------- */

/* A version of a document: what one operation wrote. */
struct state {
    int64_t version, seen;
    size_t node;
    int32_t act;
    long before; /* the state that it replaced: its place; -1: the start, no row */
    long after;  /* the node that replaced it; -1: none */
};

struct chain {
    struct state *states; /* in the order of versions */
    size_t count;
    long first; /* the node that replaced the start */
};

struct judgement {
    const struct ledger_entry **nodes;
    size_t node_count;
    struct chain *chains; /* one a document */
    int document_count;
    size_t (*edges)[2];
    size_t edge_count, edge_capacity;
    size_t violations;
    bool purging;
};

static void print_node(const struct judgement *judgement, size_t node)
{
    static const char *const acts[] = {"read", "write", "delete", "renew"};
    const struct ledger_entry *entry = judgement->nodes[node];
    printf("    process %d version %" PRId64 ":", entry->process, entry->version);
    for (int i = 0; i < entry->use_count; i++)
        printf(" %s %d at %" PRId64, acts[entry->uses[i].act], entry->uses[i].document, entry->uses[i].seen);
    printf("\n");
}

static void report(struct judgement *judgement, const char *what, int document, long node, long other)
{
    if (judgement->violations++ >= REPORTED)
        return;
    printf("  VIOLATION document %d: %s\n", document, what);
    if (node >= 0)
        print_node(judgement, (size_t)node);
    if (other >= 0)
        print_node(judgement, (size_t)other);
}

static void add_node(struct judgement *judgement, const struct ledger_entry *entry)
{
    judgement->nodes[judgement->node_count++] = entry;
    for (int use = 0; use < entry->use_count; use++) {
        struct chain *chain = &judgement->chains[entry->uses[use].document];
        chain->count += entry->uses[use].act != DRAFT_READ;
    }
}

static void add_states(struct judgement *judgement, size_t node)
{
    const struct ledger_entry *entry = judgement->nodes[node];
    for (int use = 0; use < entry->use_count; use++) {
        struct chain *chain = &judgement->chains[entry->uses[use].document];
        if (entry->uses[use].act != DRAFT_READ)
            chain->states[chain->count++] = (struct state){.version = entry->version,
                                                           .seen = entry->uses[use].seen,
                                                           .node = node,
                                                           .act = entry->uses[use].act,
                                                           .before = -1,
                                                           .after = -1};
    }
}

static void gather(struct judgement *judgement, const struct ledger *ledger)
{
    size_t total = 0;
    int documents = 0;
    for (int process = 0; process < ledger->processes; process++) {
        const struct page *page = page_of(ledger, process);
        total += page->count;
        for (size_t i = 0; i < page->count; i++)
            for (int use = 0; use < page->entries[i].use_count; use++)
                if (page->entries[i].uses[use].document >= documents)
                    documents = page->entries[i].uses[use].document + 1;
    }
    judgement->nodes = allocate(total, sizeof *judgement->nodes);
    judgement->chains = allocate((size_t)documents, sizeof *judgement->chains);
    judgement->document_count = documents;
    for (int process = 0; process < ledger->processes; process++)
        for (size_t i = 0; i < page_of(ledger, process)->count; i++)
            add_node(judgement, &page_of(ledger, process)->entries[i]);
    for (int document = 0; document < documents; document++) {
        struct chain *chain = &judgement->chains[document];
        chain->states = allocate(chain->count, sizeof *chain->states);
        chain->count = 0;
        chain->first = -1;
    }
    for (size_t node = 0; node < total; node++)
        add_states(judgement, node);
}

static int compare_states(const void *a, const void *b)
{
    int64_t one = ((const struct state *)a)->version, other = ((const struct state *)b)->version;
    return (one > other) - (one < other);
}

/* Place of the last state whose version is at most `version`; -1: none. */
static long find_state(const struct chain *chain, int64_t version)
{
    size_t low = 0, high = chain->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (chain->states[middle].version <= version)
            low = middle + 1;
        else
            high = middle;
    }
    return (long)low - 1;
}

/* Place of the state that was seen; -1: no row, from the start; -2: nobody wrote it. */
static long find_seen(const struct chain *chain, int64_t seen)
{
    long place = find_state(chain, seen);
    return place >= 0 && chain->states[place].version == seen ? place : -2;
}

static void add_edge(struct judgement *judgement, size_t from, size_t to)
{
    if (from == to)
        return;
    if (judgement->edge_count == judgement->edge_capacity) {
        judgement->edge_capacity = judgement->edge_capacity ? judgement->edge_capacity * 2 : 65536;
        judgement->edges = realloc(judgement->edges, judgement->edge_capacity * sizeof *judgement->edges);
        if (!judgement->edges)
            abort();
    }
    judgement->edges[judgement->edge_count][0] = from;
    judgement->edges[judgement->edge_count++][1] = to;
}

/* Finds what each state replaced: each may be replaced once. */
static void link_chain(struct judgement *judgement, int document)
{
    struct chain *chain = &judgement->chains[document];
    qsort(chain->states, chain->count, sizeof *chain->states, compare_states);
    for (size_t i = 0; i < chain->count; i++) {
        struct state *state = &chain->states[i];
        long node = (long)state->node;
        if (i && state[-1].version == state->version)
            report(judgement, "a version was given twice", document, node, (long)state[-1].node);
        if (state->seen > 0)
            state->before = find_seen(chain, state->seen);
        else if (state->seen == LEDGER_SEEN_UNKNOWN || judgement->purging)
            state->before = (long)i - 1;
        if (state->before == -2) {
            report(judgement, "a version was seen that nobody wrote", document, node, -1);
            state->before = -1;
            continue;
        }
        if (state->before >= (long)i)
            report(judgement, "a version went back", document, node, (long)chain->states[state->before].node);
        if (state->seen == 0 && state->before >= 0 && chain->states[state->before].act != DRAFT_DELETE)
            report(judgement, "born while it lived", document, node, (long)chain->states[state->before].node);
        long *after = state->before < 0 ? &chain->first : &chain->states[state->before].after;
        if (*after >= 0)
            report(judgement, "a version was replaced twice", document, node, *after);
        else
            *after = node;
    }
}

/* Edges of one look: after who wrote what was seen, before who replaced it. */
static void place_look(struct judgement *judgement, size_t node, const struct ledger_use *use)
{
    const struct chain *chain = &judgement->chains[use->document];
    bool is_no_row = use->seen == 0;
    if (is_no_row && judgement->purging) {
        long before = find_state(chain, use->known);
        if (before >= 0)
            add_edge(judgement, chain->states[before].node, node);
        return;
    }
    long place = is_no_row ? -1 : find_seen(chain, use->seen);
    if (place == -2) {
        report(judgement, "a version was read that nobody wrote", use->document, (long)node, -1);
        return;
    }
    if (place >= 0)
        add_edge(judgement, chain->states[place].node, node);
    long after = place < 0 ? chain->first : chain->states[place].after;
    if (after >= 0)
        add_edge(judgement, node, (size_t)after);
}

static void draw_edges(struct judgement *judgement)
{
    for (int document = 0; document < judgement->document_count; document++) {
        const struct chain *chain = &judgement->chains[document];
        for (size_t i = 0; i < chain->count; i++)
            if (chain->states[i].before >= 0)
                add_edge(judgement, chain->states[chain->states[i].before].node, chain->states[i].node);
    }
    for (size_t node = 0; node < judgement->node_count; node++)
        for (int i = 0; i < judgement->nodes[node]->use_count; i++)
            if (judgement->nodes[node]->uses[i].act == DRAFT_READ)
                place_look(judgement, node, &judgement->nodes[node]->uses[i]);
}

/* Some circle among the nodes that could not be put in order: each has one before it there too. */
static void print_circle(const struct judgement *judgement, const size_t *before_count)
{
    size_t *before = allocate(judgement->node_count, sizeof *before), node = 0;
    bool *is_passed = allocate(judgement->node_count, sizeof *is_passed);
    for (size_t i = 0; i < judgement->edge_count; i++)
        if (before_count[judgement->edges[i][0]] && before_count[judgement->edges[i][1]])
            before[judgement->edges[i][1]] = judgement->edges[i][0];
    while (!before_count[node])
        node++;
    for (; !is_passed[node]; node = before[node])
        is_passed[node] = true;
    printf("  a circle, each after the one below it and the last after the first:\n");
    size_t start = node;
    int printed = 0;
    do {
        print_node(judgement, node);
        node = before[node];
    } while (node != start && ++printed < REPORTED);
    free(is_passed);
    free(before);
}

/* Puts the operations in an order; what is left over lies on or behind circles. */
static size_t order_nodes(struct judgement *judgement)
{
    size_t nodes = judgement->node_count, edges = judgement->edge_count, left = nodes;
    size_t *before_count = allocate(nodes, sizeof *before_count), *start = allocate(nodes + 1, sizeof *start);
    size_t *targets = allocate(edges, sizeof *targets), *ready = allocate(nodes, sizeof *ready);
    size_t ready_count = 0;
    for (size_t i = 0; i < edges; i++) {
        before_count[judgement->edges[i][1]]++;
        start[judgement->edges[i][0] + 1]++;
    }
    for (size_t node = 0; node < nodes; node++)
        start[node + 1] += start[node];
    size_t *filled = allocate(nodes + 1, sizeof *filled);
    memcpy(filled, start, (nodes + 1) * sizeof *filled);
    for (size_t i = 0; i < edges; i++)
        targets[filled[judgement->edges[i][0]]++] = judgement->edges[i][1];
    for (size_t node = 0; node < nodes; node++)
        if (!before_count[node])
            ready[ready_count++] = node;
    for (size_t i = 0; i < ready_count; i++, left--)
        for (size_t k = start[ready[i]]; k < start[ready[i] + 1]; k++)
            if (--before_count[targets[k]] == 0)
                ready[ready_count++] = targets[k];
    if (left)
        print_circle(judgement, before_count);
    free(before_count);
    free(start);
    free(targets);
    free(ready);
    free(filled);
    return left;
}

size_t ledger_judge(const struct ledger *ledger, bool purging)
{
    struct judgement judgement = {.purging = purging};
    gather(&judgement, ledger);
    for (int document = 0; document < judgement.document_count; document++)
        link_chain(&judgement, document);
    draw_edges(&judgement);
    if (judgement.violations > REPORTED)
        printf("  … %zu violations of the chains in all\n", judgement.violations);
    size_t in_circles = order_nodes(&judgement);
    if (in_circles)
        printf("  VIOLATION %zu of %zu operations are on or behind circles\n", in_circles,
               judgement.node_count);
    for (int document = 0; document < judgement.document_count; document++)
        free(judgement.chains[document].states);
    free(judgement.chains);
    free(judgement.nodes);
    free(judgement.edges);
    return judgement.violations + in_circles;
}
