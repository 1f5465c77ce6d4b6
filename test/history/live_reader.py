"""Reads the events of a live connection, again and again."""
import http.client
import json
import time


class LiveReader:
    """Has `last`, the id to continue from, `is_ending`, `dice` and `campaign`; `listen` opens a connection, and `hear` takes an event."""

    def live(self):
        while not self.is_ending:
            try:
                self.listen(*self.dice.choice(self.campaign.servers))
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(self.dice.choice((0.02, 0.1, 0.5)))

    def goes_on(self):
        """Is the connection still of use?  Asked before each line."""
        return not self.is_ending

    def read(self, answer):
        name, data, id_ = None, None, self.last
        while self.goes_on():
            line = answer.readline()
            if not line.endswith(b'\n'):
                return
            field, _, value = line.decode().rstrip('\n').partition(': ')
            if field == 'id':
                id_ = value
            elif field == 'event':
                name = value
            elif field == 'data':
                data = json.loads(value)
            elif not line.strip():
                if name and not self.hear(name, data):
                    return  # a client that connects again with the former id gets the event again
                name, self.last = None, id_
