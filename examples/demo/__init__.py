"""The main job on one machine, told as a story that checks itself: `python -m examples.demo`.

Everything in it is what a user would do: `maserve` commands, requests through the gateway, a look
at the processes and files that are there. Every sentence marked `ok` is a claim that was checked;
one that does not hold makes the exit code 1.
"""
