"""What scripts/demo gives the sample application: the classes of the catalogue, and the accounts, rules and records of team."""
import json

from stack import SOURCE

LIBRARY = SOURCE / 'scripts/lib'
NAMESPACES = {'z': 'closed', 'demo': 'read', 'team': 'rules'}
PASSWORD = 'correct horse battery'


def declare(stack):
    stack.admin('ns', 'accounts', 'team', '{"registration":"open","anonymous":true,"whois":"account"}')
    for ns, what in (('demo', 'catalogue'), ('team', 'team')):
        stack.admin('schema', 'set', ns, str(LIBRARY / f'{what}-schema.json'))
        stack.admin('schema', 'apply', ns)
    stack.admin('rules', 'set', 'team', str(LIBRARY / 'team-rules.json'))
    stack.op('z', 'ns', {'set': {'ns': 'team', 'records': json.loads((LIBRARY / 'team-records.json').read_text())}}, admin=True)


def create_account(hands, name):
    """By the form that is on the screen."""
    hands.click('Create an account')
    hands.fill('Name', name)
    hands.fill('New password', PASSWORD)
    hands.click('Create an account', 'button.main')
    hands.shows(name, '#name')  # the lists, after the page was loaded again


def sign_in(hands, name):
    hands.fill('Name', name)
    hands.fill('Password', PASSWORD)
    hands.click('Sign in')
    hands.shows(name, '#name')  # the lists, after the page was loaded again
