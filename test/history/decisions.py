"""What the access rules of a rights campaign grant, said again in Python, over *facts*: values that one thread of the campaign writes.

    rules                   the number of the rules in force, of RULES
    roles:ACCOUNT           its roles, sorted
    off:ACCOUNT             is it disabled?
    session:NUMBER          has it begun, and not ended?
    main:CLASS/ID           the content of the document's item Main
    member:CLASS/ID:ACCOUNT the role in the item Member with this key; None: there is no such item
    secret:CLASS/ID         the content of the item Secret
"""
import itertools

MOST = 4096  # combinations of values
EVERYBODY = {'read': ['anybody'], 'list': ['anybody']}
CREW = {'members': 'Member', 'read': ['members'], 'list': ['members']}
TEAM = {'class': 'Crew', 'id': 'Main.crew', 'members': 'Member'}


def rules_of(own, club, duty, desk, see):
    """Each argument: grants of those who may read, of those who may list, of those who may update."""
    def rights(grants):
        return dict(zip(('read', 'list', 'update'), grants, strict=True))
    secret = {'items': {'Secret': {'see': see}}}
    return {'Own': {'owner': 'Main.owner', **rights(own), **secret}, 'Club': {'members': 'Member', **rights(club), **secret},
            'Duty': {'team': TEAM, **rights(duty), **secret}, 'Desk': {**rights(desk), **secret}, 'Crew': CREW}


RULES = [
    rules_of((['owner', 'role:boss'], ['owner'], ['owner']), (['members'], ['members'], ['members:writer']),
             (['team'], ['team'], ['team:chief']), (['role:editor'], ['role:editor'], ['role:editor']), ['role:boss']),
    rules_of((['owner'], ['owner'], ['owner']), (['members:writer', 'role:boss'], ['members'], ['members']),
             (['team:chief', 'role:editor'], ['team:chief', 'role:editor'], ['team']), (['account'], ['role:editor'], []), []),
    rules_of((['owner', 'role:editor'], ['role:editor', 'owner'], ['role:editor']), (['account'], ['members'], ['members']),
             (['team'], ['team:chief'], ['team']), (['role:boss'], ['role:boss'], ['role:boss']), ['role:boss', 'role:editor']),
]


def grants(grant, class_rules, document, account, value):
    """`value`: of a fact.  `account` None: nobody has signed in."""
    kind, _, role = grant.partition(':')
    if kind == 'anybody':
        return True
    if account is None:
        return False
    if kind == 'account':
        return True
    if kind == 'role':
        return role in (value(f'roles:{account}') or ())
    if kind == 'owner':
        return (value(f'main:{document}') or {}).get('owner') == account
    if kind == 'members':
        has = value(f'member:{document}:{account}')
    elif kind == 'team':
        crew = (value(f'main:{document}') or {}).get('crew')
        has = value(f'member:{class_rules["team"]["class"]}/{crew}:{account}')
    else:
        raise ValueError(grant)
    return has is not None and (not role or has == role)


def may(right, document, account, value):
    """read, list, update; see: the item Secret.  All but `read` need `read` too."""
    rules = RULES[value('rules')][document.partition('/')[0]]
    allowed = rules['items']['Secret']['see'] if right == 'see' and 'items' in rules else rules.get('read' if right == 'see' else right, [])
    return any(grants(one, rules, document, account, value) for one in allowed) and (
        right == 'read' or may('read', document, account, value))


def is_signed_in(account, session, value):
    return value(f'session:{session}') and not value(f'off:{account}')


def outcomes(decide, possible, known=None):
    """What `decide(value)` may be: each combination of the values that the facts may have.  `possible(fact)`: a list; `known`: values of facts
    that an answer shows.  None: there are too many."""
    fixed, open_facts, found = dict(known or {}), {}, set()

    class Unknown(Exception):
        pass

    def first(fact):
        if fact not in fixed:
            values = possible(fact)
            if len(values) > 1:
                raise Unknown(fact)
            fixed[fact] = values[0]
        return fixed[fact]

    def decided(choice):
        return decide(lambda fact: choice[fact] if fact in choice else first(fact))

    waiting = [{}]
    for _ in itertools.repeat(None, MOST):
        if not waiting:
            return found
        choice = waiting.pop()
        try:
            found.add(decided(choice))
        except Unknown as unknown:
            fact = unknown.args[0]
            open_facts.setdefault(fact, possible(fact))
            waiting += [{**choice, fact: one} for one in open_facts[fact]]
    return None
