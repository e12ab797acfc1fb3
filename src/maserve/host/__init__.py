"""The only door to this machine: programs, ports, files, loopback HTTP.

Invariant: knows no serving framework and no resource. Programs it starts outlive it and are adopted
again; a file it writes is there whole or not at all.
"""

from maserve.host.command import CommandResult, run_command
from maserve.host.datafolder import DataFolder, FolderLock
from maserve.host.files import (
    find_bytes,
    find_json,
    make_folder,
    remove_file,
    remove_tree,
    signature_of,
    write_atomically,
    write_json,
)
from maserve.host.http import Answer, HttpClient
from maserve.host.logs import cap_log, log_size_bytes, lossy, read_log_from, tail_log
from maserve.host.ports import LOOPBACK, PortBook, try_listen
from maserve.host.proc import activity, memory_bytes
from maserve.host.process import Exit, Process
from maserve.host.program import Program
from maserve.host.shm import remove_shared_memory
from maserve.host.supervisor import Supervisor, clean_environment
from maserve.host.watches import can_watch, watch_limit
from maserve.host.worker import Worker

__all__ = [
    "DataFolder",
    "FolderLock",
    "Supervisor",
    "Program",
    "Process",
    "Exit",
    "clean_environment",
    "PortBook",
    "try_listen",
    "LOOPBACK",
    "HttpClient",
    "Answer",
    "Worker",
    "write_atomically",
    "write_json",
    "find_json",
    "find_bytes",
    "make_folder",
    "signature_of",
    "remove_file",
    "remove_tree",
    "tail_log",
    "lossy",
    "cap_log",
    "read_log_from",
    "log_size_bytes",
    "memory_bytes",
    "activity",
    "run_command",
    "CommandResult",
    "remove_shared_memory",
    "can_watch",
    "watch_limit",
]
