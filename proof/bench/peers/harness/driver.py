"""A driver process: orders go in as lines of JSON, answers come out as lines of JSON, and it ends when its input does."""

import json
import os
import queue
import signal
import subprocess
import threading
import time

END_SECONDS = 30


class Failed(Exception):
    """A driver that did not do what it was told; the message says why, for people."""


class Driver:
    def __init__(self, command, settings, log):
        self.log = open(log, "a+")
        self.process = subprocess.Popen(
            [*command, json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            start_new_session=True,
        )
        self.answers = queue.Queue()
        self.early = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.answers.put(json.loads(line))
        self.answers.put(None)

    def tell(self, order, /, **more):
        try:
            self.process.stdin.write(json.dumps({"order": order, **more}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"the driver has ended: {self.last_words()}") from None

    def hear(self, word, seconds):
        """The answer that has this word; others may come before it, where one process enqueues and works."""
        for answer in self.early:
            if word in answer:
                self.early.remove(answer)
                return answer
        end = time.monotonic() + seconds
        while True:
            try:
                answer = self.answers.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Failed(f"no answer within {seconds:.0f} s") from None
            if answer is None:
                raise Failed(f"the driver has ended: {self.last_words()}")
            if word in answer:
                return answer
            self.early.append(answer)

    def ask(self, order, word, patience, /, **more):
        self.tell(order, **more)
        return self.hear(word, patience)

    def last_words(self):
        self.process.wait(END_SECONDS)
        self.log.seek(0)
        lines = [line.strip() for line in self.log.read().splitlines() if line.strip()]
        telling = [line for line in lines if "rror" in line]
        return (telling or lines or ["it said nothing"])[-1][:300]

    def end(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            # With what it has started.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
