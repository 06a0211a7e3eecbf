"""A Celery application as its manual has it: tasks that succeed, retry, wait for their eta, or are too late. Results come back by rpc."""
import os
import time

import celery

app = celery.Celery("app", broker=os.environ["BROKER_URL"], backend="rpc://")
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=4, worker_hijack_root_logger=False, result_expires=60)


@app.task
def add(x, y):
    return x + y


@app.task(bind=True, max_retries=5)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    return self.request.retries


@app.task
def started_at():
    return time.time()


@app.task
def touch(marker):
    open(marker, "w").close()


@app.task(bind=True)
def dies_once(self, marker):
    """Ends its worker process without an ack the first time; the broker hands the message to the next."""
    if not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(1)
    return self.request.delivery_info["redelivered"]
