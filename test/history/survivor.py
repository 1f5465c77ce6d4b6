"""What the surviving primary has, read past stampd at one instant: lines of the history, which the checker judges as any other read."""
import json
import time

from client import CLASS
from external_worker import ITEM, TALLY
from state import compact, pack

ROWS = """select d.id, d.version, d.ctime, i.iclass, i.key, i.version, i.content
    from doc d left join item i on i.class = d.class and i.id = d.id and i.content is not null and d.ctime <> 0
    where d.class = %s and d.id = any(%s)"""


def read_rows(campaign, *classes):
    """{class: {id: (version, birth, {(class, key): (version, content)})}} of documents that exist, all at one instant; None: no answer."""
    psql = campaign.stack.psql
    try:
        psql(campaign.ns, 'begin isolation level repeatable read read only')
        found = {name: collect(psql(campaign.ns, ROWS, (name, ids))) for name, ids in classes}
        psql(campaign.ns, 'rollback')
        return found
    except Exception:  # the connection belongs to a server that is no more
        campaign.stack.connections.clear()
        return None


def collect(rows):
    documents = {}
    for id_, version, ctime, item_class, key, item_version, content in rows:
        if ctime:
            _, _, items = documents.setdefault(id_, (version, ctime, {}))
            if item_class is not None:
                items[item_class, key] = (item_version, json.loads(content))
    return documents


def state_text(document):
    _, ctime, items = document
    return pack(ctime, {f'{name}.{key}' if key else name: (version, compact(content)) for (name, key), (version, content) in items.items()})


def note_survivor(campaign):
    """All is at rest: what was acknowledged must be there, and what counts must have been counted as often as it should."""
    start, counting = time.monotonic_ns(), [*campaign.tallies(), *campaign.endings()]
    while (found := read_rows(campaign, (CLASS, campaign.documents), (TALLY, counting))) is None:
        time.sleep(0.1)
    leader, hot = campaign.leader, found[CLASS]
    reads = [[id_, hot[id_][0], state_text(hot[id_])] if id_ in hot else [id_, 0, ''] for id_ in campaign.documents]
    leader.note(leader.next_name(), 'survivor', start, 'ok', reads)
    items = {id_: document[2] for id_, document in found[TALLY].items()}
    leader.note(leader.next_name(), 'survivor', start, 'ok', tallies={
        name: {key: content for (_, key), (_, content) in items.get(name, {}).items()} for name in campaign.tallies()}, ended={
        name: {key: content for (one, key), (_, content) in items.get(name, {}).items() if one == ITEM} for name in campaign.endings()})
