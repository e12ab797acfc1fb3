"""Messages as JSON values, both ways, with every problem named by its field's path.

Role: the mapping of behaviour 1.2 over plain Python values (dict, list, str, int, float, bool,
None). **Invariants:** what is written reads back to the same message; nothing that was given is
dropped silently; knows messages, not resources.
"""

from maserve.resource.jsonform.form import AnyForm, Form
from maserve.resource.jsonform.reading import read_message
from maserve.resource.jsonform.unknown import list_unknown
from maserve.resource.jsonform.writing import write_message

__all__ = ["AnyForm", "Form", "read_message", "write_message", "list_unknown"]
