"""Sends tasks to the workers of app.py and prints what became of them as one line of JSON.

run.py tasks MARKER  while a worker runs
run.py late QUEUE    one task that expires in the queue of a worker that is not there, and one that does not
run.py headers QUEUE one task that is due in 1.5 s and one that is useless after 0.5 s, for a worker that is not there
run.py die MARKER    a task whose first worker dies
"""
import json
import os
import sys
import time

from app import add, app, dies_once, started_at, third_time, touch

LIMIT = 30


def tasks(marker):
    eta = time.time() + 1.5
    waits = started_at.apply_async(countdown=1.5)
    sums = [add.delay(i, i) for i in range(200)]
    touch.apply_async((marker,), expires=-1)  # before the tasks below in the same queue
    return {
        "sums": [r.get(timeout=LIMIT) for r in sums],
        "retries": third_time.delay().get(timeout=LIMIT),
        "early_s": eta - waits.get(timeout=LIMIT),
        "too_late_ran": os.path.exists(marker),
        "pong": len(app.control.ping(timeout=2)),
    }


def late(queue):
    add.apply_async((1, 1), queue=queue, expiration=0.3)
    kept = add.apply_async((2, 2), queue=queue)
    return {"kept": kept.id}


def headers(queue):
    add.apply_async((1, 1), queue=queue, expires=0.5)
    add.apply_async((2, 2), queue=queue, countdown=1.5)
    add.apply_async((3, 3), queue=queue)
    return {"eta": time.time() + 1.5}


def die(marker):
    return {"redelivered": dies_once.delay(marker).get(timeout=LIMIT)}


print(json.dumps({"tasks": tasks, "late": late, "headers": headers, "die": die}[sys.argv[1]](*sys.argv[2:])))
