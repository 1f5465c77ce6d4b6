"""Another PostgreSQL for the namespaces of a stack."""
from stack import Stack


class Cluster(Stack):
    """The PostgreSQL of a stack without the rest: another cell."""

    def start(self):
        self.step('postgres', 'create')
        self.step('postgres', 'start')
        return self

    @property
    def cell(self):
        return f'host={self.database} user=stampd'


def create(stack, code, *words):
    stack.admin('ns', 'create', code, *words)
    stack.reload_nginx()
