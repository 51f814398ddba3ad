#!/usr/bin/python3
"""Counts round trips: a proxy between a client and a server's socket.

usage: token_proxy.py LISTEN SERVER COUNTS

LISTEN and SERVER are paths of sockets. A round trip begins when the client sends
after the server has spoken last (or at the start). Each one is a line in the file
COUNTS: the types of the messages sent, as letters of the protocol. Connecting,
up to the first ReadyForQuery, is left out, and so is Terminate. A connection's end
is a line "end".
"""

import os
import selectors
import socket
import sys
import threading

listen, server, counts = sys.argv[1:]


class Messages:
    """Splits a stream into messages and answers their types."""

    def __init__(self, startup):
        self.bytes = b""
        self.startup = startup

    def types(self, more):
        self.bytes += more
        types = ""
        while True:
            head = 0 if self.startup else 1
            if len(self.bytes) < head + 4:
                return types
            size = head + int.from_bytes(self.bytes[head : head + 4], "big")
            if len(self.bytes) < size:
                return types
            if head:
                types += chr(self.bytes[0])
            self.startup = False
            self.bytes = self.bytes[size:]


def record(types):
    if types not in ("", "X"):
        with open(counts, "a") as file:
            file.write(types + "\n")


def relay(client):
    upstream = socket.socket(socket.AF_UNIX)
    upstream.connect(server)
    selector = selectors.DefaultSelector()
    selector.register(client, selectors.EVENT_READ)
    selector.register(upstream, selectors.EVENT_READ)
    sent, received = Messages(True), Messages(False)
    connected, burst, answered = False, "", False
    while True:
        for key, _ in selector.select():
            data = key.fileobj.recv(65536)
            if not data:
                record(burst)
                record("end")
                client.close()
                upstream.close()
                return
            if key.fileobj is client:
                types = sent.types(data)
                if answered:
                    record(burst)
                    burst = ""
                answered = False
                burst += types if connected else ""
                upstream.sendall(data)
            else:
                types = received.types(data)
                connected = connected or "Z" in types
                answered = True
                client.sendall(data)


acceptor = socket.socket(socket.AF_UNIX)
acceptor.bind(listen)
acceptor.listen()
print("listening", flush=True)
parent = os.getppid()
acceptor.settimeout(1)
while os.getppid() == parent:
    try:
        client = acceptor.accept()[0]
    except TimeoutError:
        continue
    client.setblocking(True)
    threading.Thread(target=relay, args=(client,), daemon=True).start()
