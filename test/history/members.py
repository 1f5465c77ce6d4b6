"""Collections in a history: what somebody holds of one is what the documents were at one instant.

    "reads": [[document, version, null]…]     the members that it holds, by the version of their documents
    "team": value, "outside": [document…]     of which collection, and which documents it does not hold
    "inside": [[document, version]…]          found by a search, with the version of the item that makes it a member
"""
import json

from state import unpack


def team_of(state):
    """The value by which a document with this state is a member; None: it is in no collection."""
    if not state:
        return None
    team = unpack(state)[1].get('Team')
    return json.loads(team[1]).get('team') if team else None


def has_item(state, team, version):
    """Is the item that makes it a member of the team the one of this version?  True when nobody knows."""
    if state is None:
        return True
    item = unpack(state)[1].get('Team') if state else None
    return item is not None and item[0] == version and team_of(state) == team


def judge_members(operations, write_of):
    """(words, operation) of each member that the version says was none.  `write_of`: what is known of a version."""
    for operation in operations:
        if operation.team is None:
            continue
        for document, version, _ in operation.reads:
            write = write_of(document, version)
            if write and write.state is not None and team_of(write.state) != operation.team:
                yield f'{document}@{version} is no member of {operation.team}', operation
