"""A directed graph of operations, and of barriers that stand for points of time: strongly connected components, the
shortest cycle in one, what can be reached."""
from collections import deque


class Graph:
    """Nodes are numbers from 0; those below `operations` are operations, the others barriers."""

    def __init__(self, operations):
        self.operations = operations
        self.out = [[] for _ in range(operations)]  # (node, kind, document)

    def add_node(self):
        self.out.append([])
        return len(self.out) - 1

    def add(self, source, target, kind, document=None):
        if source != target:
            self.out[source].append((target, kind, document))

    def remove(self, source, target, kind, document=None):
        if source != target:
            self.out[source].remove((target, kind, document))

    def components(self):
        """Strongly connected components of more than one node (Tarjan, without recursion)."""
        index, low = [0] * len(self.out), [0] * len(self.out)
        on_stack, stack, found, count = bytearray(len(self.out)), [], [], 0
        for root in range(len(self.out)):
            if index[root]:
                continue
            count += 1
            index[root] = low[root] = count
            stack.append(root)
            on_stack[root] = 1
            work = [(root, iter(self.out[root]))]
            while work:
                node, edges = work[-1]
                for target, _, _ in edges:
                    if not index[target]:
                        count += 1
                        index[target] = low[target] = count
                        stack.append(target)
                        on_stack[target] = 1
                        work.append((target, iter(self.out[target])))
                        break
                    if on_stack[target]:
                        low[node] = min(low[node], index[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        component = []
                        while True:
                            member = stack.pop()
                            on_stack[member] = 0
                            component.append(member)
                            if member == node:
                                break
                        if len(component) > 1:
                            found.append(component)
        return found

    def shortest_cycle(self, component, sources_most=400):
        """[(operation, kind, document)…], each with the edge that leaves it; a way over barriers is one edge `rt`."""
        inside = set(component)
        sources = sorted(node for node in component if node < self.operations)
        best = None
        for source in sources[::max(1, len(sources) // sources_most)]:
            cycle = self.cycle_through(source, inside, len(best) if best else 1 << 30)
            if cycle and (best is None or len(cycle) < len(best)):
                best = cycle
                if len(best) == 2:
                    break
        return best

    def cycle_through(self, source, inside, below):
        cost, came, queue = {source: 0}, {}, deque([source])
        while queue:
            node = queue.popleft()
            for target, kind, document in self.out[node]:
                if target not in inside:
                    continue
                step = cost[node] + (1 if node < self.operations else 0)
                if target == source:
                    if step < below:
                        return self.walk_back(source, node, kind, document, came)
                    continue
                if step < below and step < cost.get(target, 1 << 30):
                    cost[target] = step
                    came[target] = (node, kind, document)
                    if step == cost[node]:
                        queue.appendleft(target)
                    else:
                        queue.append(target)
        return None

    def walk_back(self, source, node, kind, document, came):
        steps = [(node, kind, document)]
        while node != source:
            node, kind, document = came[node]
            steps.append((node, kind, document))
        return [step for step in reversed(steps) if step[0] < self.operations]

    def reaches(self, source, target, may_pass):
        """Is there a way, over nodes that `may_pass`?"""
        seen, queue = {source}, [source]
        while queue:
            for node, _, _ in self.out[queue.pop()]:
                if node == target:
                    return True
                if node not in seen and may_pass(node):
                    seen.add(node)
                    queue.append(node)
        return False
