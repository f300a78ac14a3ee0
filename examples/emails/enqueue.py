"""python enqueue.py ADDRESS...: welcome some people, and tell what became of each message."""

import sys

from jobs import app, send_email

from corvo_sdk import JobNotCompletedError

calls = [send_email.call(to, "Welcome", "It is good to have you here.") for to in sys.argv[1:]]
for to, handle in zip(sys.argv[1:], app.enqueue_many(calls), strict=True):
    try:
        message_id = handle.result(timeout="1m")
    except JobNotCompletedError as error:
        print(f"{to}: given up, {error}")
    else:
        print(f"{to}: {message_id} went out in attempt {handle.refresh().attempt}")
