"""A client of stampd, a document database: it needs Python 3.9 and nothing else.

    from stampd import Client
    client = Client('https://localhost:8443/lab', token='st_…')
    client.put({'c': 'Note', 'id': 'first', 'items': [{'c': 'Title', 'j': 'Shopping'}]})

Client runs operations, Copy and follow keep documents up to date, Live gives the events of changes, Worker does the work of tasks, and Records
are values in the memory of the host.  Whatever fails raises Fault.
"""
from .client import Client
from .copies import Copy, content_of, name_of
from .fault import JSON, Fault
from .live import Event, Live, follow
from .records import Record, Records
from .worker import Done, Failure, Task, Worker

__all__ = ['JSON', 'Client', 'Copy', 'Done', 'Event', 'Failure', 'Fault', 'Live', 'Record', 'Records', 'Task', 'Worker', 'content_of', 'follow', 'name_of']
