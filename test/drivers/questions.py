# What the Python drivers ask, and how they print what comes back.
#
# One line of JSON for each question: [value, call, outcome]. The outcome is
# what the call answered, as text; "error SQLSTATE file" when the server refused,
# with the source file that did; "client" when the driver did not send it.

import json
import sys

CALLS = {
    "is_pinned": "SELECT replica_pin.is_pinned(%s)::text",
    "route": "SELECT reason FROM replica_pin.route(%s)",
    "is_any_pinned": "SELECT replica_pin.is_any_pinned(%s)::text",
    "route_all": "SELECT reason FROM replica_pin.route_all(%s)",
    "route token": "SELECT reason FROM replica_pin.route(NULL, %s)",
    "route_all token": "SELECT reason FROM replica_pin.route_all(ARRAY['free'], %s)",
    "has_replayed": "SELECT replica_pin.has_replayed(%s)::text",
    "token_lsn": "SELECT replica_pin.token_lsn(%s)::text",
}

PINS = {
    "pin": "SELECT replica_pin.pin(%s)",
    "pin_all": "SELECT replica_pin.pin_all(%s)",
}


def values(token):
    return {
        "token": token,
        "token in lower case": token.lower(),
        "array": ["a", "b"],
        "tuple": ("a", "b"),
        "empty array": [],
        "array of None": [None],
        "array with None": ["a", None],
        "array with empty text": ["a", ""],
        "array of numbers": [1, 2],
        "nested array": [["a"], ["b"]],
        "ragged array": [["a"], ["b", "c"]],
        "None": None,
        "text None": "None",
        "empty text": "",
        "number": 42,
        "boolean": True,
        "not a number": float("nan"),
        "dictionary": {"token": token},
        "bytes": token.encode(),
        "binary": b"\xff\xfe\x00\x80",
        "zero byte": token + "\0",
        "lone surrogate": "\ud800",
        "quotes": "'; SELECT 'x",
        "backslashes": "\\' \\\\ \\x00",
        "JSON": json.dumps({"token": token}),
        "JSON list": json.dumps([token]),
        "array literal": "{" + token + "}",
        "percent": "%s %(name)s %31",
        "unicode": "naïve 用户 🗝",
        "wide digits": token.translate({ord("0"): "０"}),
        "token and newline": token + "\n",
        "two tokens": token + "," + token,
        "cut token": token[:41],
        "bare LSN": "0/16B3748",
        "long": "x" * 200000,
    }


def outcome(run, error_class, sql, value):
    try:
        answer = run(sql, value)
    except error_class as error:
        diag = getattr(error, "diag", None)
        if diag is None or diag.sqlstate is None:
            return "client"
        return f"error {diag.sqlstate} {diag.source_file}"
    except (TypeError, ValueError):
        return "client"
    return "null" if answer is None else answer


def main(run, error_class):
    mode, token = sys.argv[1:]
    calls = {**PINS, **CALLS} if mode == "pin" else CALLS
    for label, value in values(token).items():
        for call, sql in calls.items():
            print(json.dumps([label, call, outcome(run, error_class, sql, value)]))
