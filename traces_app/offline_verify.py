"""Checks a proof bundle of Penguin Web; needs Python 3.9 or newer and nothing else.

    python verify.py [BUNDLE.zip | FOLDER] [--key PUBLIC_KEY_IN_HEX]

Without a path it checks the folder it lies in: trace.jsonl holds the record, one
message per line, proof.jsonl a line about the whole, one per event {seq, salt, header,
hash}, and what the instance signed: checkpoints, witness lines, erasures.

    body_sha256 = SHA-256(salt || line), hash(n) = SHA-256(hash(n-1) || header(n))

Ends with 0 intact and complete, 1 tampered, 2 incomplete, 3 unreadable. The public
key comes with the bundle, so a forger can put in another: compare the key that is
printed with the one you know, or give yours with --key.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import IO, Any

GOOD, TAMPERED, INCOMPLETE, UNREADABLE = range(4)

# Ed25519, RFC 8032: points as (X, Y, Z, T) with x = X/Z, y = Y/Z, x*y = T/Z.
Point = tuple[int, int, int, int]
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
IDENTITY: Point = (0, 1, 1, 0)


def add(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(number: int, point: Point) -> Point:
    """Return number * point, four bits at a time."""
    table = [IDENTITY]
    for _ in range(15):
        table.append(add(table[-1], point))
    result = IDENTITY
    for shift in range(252, -1, -4):
        for _ in range(4):
            result = add(result, result)
        result = add(result, table[number >> shift & 15])
    return result


def point_of(encoded: bytes) -> Point | None:
    """Return the point of 32 bytes, None for bytes that are none."""
    y = int.from_bytes(encoded, "little") & (1 << 255) - 1
    if len(encoded) != 32 or y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and encoded[31] >> 7):
        return None
    if x & 1 != encoded[31] >> 7:
        x = P - x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little")) or IDENTITY


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the Ed25519 signature over the message is the key's."""
    key, r = point_of(public), point_of(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or r is None or len(signature) != 64 or s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    left = multiply(s, BASE)
    right = add(r, multiply(int.from_bytes(digest, "little") % L, key))
    return all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))


def canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class Bundle:
    """Walks both files side by side and keeps the first finding of each verdict."""

    def __init__(self, trace: IO[bytes], proof: IO[bytes], key: bytes | None) -> None:
        self.trace, self.proof, self.key = trace, proof, key
        self.about: dict[str, Any] = {}
        self.tampered = self.incomplete = ""
        self.notes: list[str] = []
        self.seq = self.request = 0  # request: seq of an open one
        self.has_ended = False  # aborted, and no request since
        self.head = bytes(32)
        self.erased: dict[int, str] = {}  # seq -> digest of the body that was there
        self.hashes: dict[int, str] = {}  # seq -> hash, of the signed ones
        self.decisions: dict[str, str] = {}  # tool_call_id -> decision, "" for none
        self.open: dict[str, int] = {}  # tool_call_id -> seq, of calls without output

    def found(self, sentence: str) -> None:
        self.tampered = self.tampered or sentence

    def lacks(self, sentence: str) -> None:
        self.incomplete = self.incomplete or sentence

    def check(self) -> None:
        self.about = json.loads(self.proof.readline())
        if self.about.get("proof") != 1:
            raise ValueError("proof.jsonl does not begin with {proof: 1}")
        statements, signed = [], set(self.about["signed"])
        for line in self.proof:
            proof = json.loads(line)
            if "header" in proof:
                self.check_event(proof, self.trace.readline(), signed)
            else:
                statements.append(proof)
        if self.trace.readline():
            self.found(f"trace.jsonl goes on after event #{self.seq}")
        if (self.seq, self.head.hex()) != (
            self.about["count"],
            self.about["head_hash"],
        ):
            self.found(f"the proof is about {self.about['count']} events, another end")
        self.check_statements(statements)
        self.finish()

    def check_event(self, proof: dict[str, Any], line: bytes, signed: set[int]) -> None:
        seq, header = proof["seq"], proof["header"]
        if not line:
            self.found(f"event #{seq} is missing from trace.jsonl")
            return
        body = line[:-1] if line.endswith(b"\n") else line
        digest = hashlib.sha256(bytes.fromhex(proof["salt"]) + body).hexdigest()
        link = hashlib.sha256(self.head + header.encode()).hexdigest()
        said = json.loads(header)
        if seq != self.seq + 1 or said["seq"] != seq:
            self.found(f"event #{self.seq + 1} is missing or out of place")
        elif said["trace"] != self.about["trace"]:
            self.found(f"event #{seq} belongs to another record, {said['trace']}")
        elif "erased" in proof:
            self.erased[seq] = said["body_sha256"]
        elif digest != said["body_sha256"]:
            self.found(f"event #{seq} was changed: its digest does not fit")
        if link != proof["hash"]:
            self.found(f"event #{seq} does not follow from the one before it")
        self.seq, self.head = seq, bytes.fromhex(proof["hash"])
        if seq in signed:
            self.hashes[seq] = proof["hash"]
        self.check_message(seq, body, said)

    def check_message(self, seq: int, body: bytes, said: dict[str, Any]) -> None:
        try:
            message = json.loads(body)
            if any(message[name] != said[name] for name in ("timestamp", "type")):
                self.found(f"event #{seq} and its header differ in time or type")
            if seq == 1 and message["type"] != "session_meta":
                self.lacks("the first event is no session_meta")
            if not message.get("origin"):
                self.fold(seq, message["payload"].get("type"), message["payload"])
        except (ValueError, KeyError, TypeError, AttributeError):
            self.found(f"event #{seq} is no message")

    def fold(self, seq: int, kind: Any, payload: dict[str, Any]) -> None:
        """Follow requests: each must end, with all its calls, before the next."""
        if kind == "request_begin":
            if self.what_is_open():
                self.lacks(f"{self.what_is_open()} before the next request at #{seq}")
            self.request, self.has_ended = seq, False
        elif kind == "request_end":
            if not self.request:
                self.lacks(f"#{seq} ends a request that never began")
            self.request = 0
        elif kind == "abort":
            self.has_ended = True
        elif kind == "damaged":
            self.lacks(f"line {payload['line']} of the imported file is damaged")
        elif "tool_call_id" in payload:
            self.fold_call(seq, kind, payload)

    def fold_call(self, seq: int, kind: str, payload: dict[str, Any]) -> None:
        """Follow a call: one decision, a start only if allowed, one output."""
        call = payload["tool_call_id"]
        decision = self.decisions.get(call)
        if kind == "tool_call":
            if decision is not None:
                self.lacks(f"the call of #{seq} stands twice in the record")
            self.decisions[call], self.open[call] = "", seq
        elif kind == "approval_decision":
            if decision != "" or call not in self.open:
                self.lacks(f"#{seq} decides a call that does not wait for it")
            self.decisions[call] = payload["decision"]
        elif kind == "tool_started" and decision != "allow":
            self.lacks(f"#{seq} starts a call that was not allowed")
        elif kind == "tool_call_output" and not (self.open.pop(call, 0) and decision):
            self.lacks(f"#{seq} is an output without call or decision, or a second")

    def what_is_open(self) -> str:
        if self.request:
            return f"the request begun at #{self.request} has not ended"
        for call, seq in self.open.items():
            lack = "output" if self.decisions[call] else "decision"
            return f"the call of #{seq} has no {lack}"
        return ""

    def check_statements(self, statements: list[dict[str, Any]]) -> None:
        """Check what the instance signed while the record grew, and the witness."""
        covered, checked = 0, set()
        for statement in statements:
            if "erasure" in statement:
                self.check_erasure(statement["erasure"])
                continue
            line = statement.get("checkpoint") or statement["witness"]
            covered = max(covered, line["seq"])
            if canonical(line) not in checked:
                checked.add(canonical(line))
                self.check_checkpoint(line)
        if covered < self.seq:
            self.notes.append(f"no checkpoint vouches for events after #{covered}")
        for seq in self.erased:
            self.found(f"event #{seq} claims to be erased, but no journal says so")

    def check_checkpoint(self, line: dict[str, Any]) -> None:
        self.found(self.why_unsigned(line))
        if line["trace"] != self.about["trace"]:
            self.found(f"a checkpoint is of another record, {line['trace']}")
        elif self.hashes.get(line["seq"]) != line["head_hash"]:
            self.found(f"the checkpoint at #{line['seq']} signed another head")

    def check_erasure(self, erasure: dict[str, Any]) -> None:
        """Check the signed entry of the journal that tells of an erasure."""
        line, text = erasure["checkpoint"], erasure["text"]
        entry, salted = json.loads(text), bytes.fromhex(erasure["salt"]) + text.encode()
        details = entry["details"]
        header = {"v": 1, "trace": "journal", "seq": line["seq"], "type": "erase"}
        header |= {"timestamp": entry["timestamp"]}
        header |= {"body_sha256": hashlib.sha256(salted).hexdigest()}
        linked = bytes.fromhex(erasure["previous"]) + canonical(header).encode()
        said = (hashlib.sha256(linked).hexdigest(), "journal", entry["session_id"])
        if said != (line["head_hash"], line["trace"], self.about["trace"]):
            return
        seq, why = details["seq"], f"{entry['person']}: {details['reason']}"
        if self.erased.get(seq) == details["body_sha256"]:
            del self.erased[seq]
            self.found(self.why_unsigned(line))
            self.notes.append(f"the body of #{seq} was erased by {why}")

    def why_unsigned(self, line: dict[str, Any]) -> str:
        what = f"the checkpoint at #{line['seq']} of {line['trace']}"
        text = canonical({k: v for k, v in line.items() if k != "signature"})
        public = bytes.fromhex(self.about["public_keys"].get(line["key_id"], ""))
        if self.key is not None and public != self.key:
            return f"{what} is not signed with the key you trust"
        if hashlib.sha256(public).hexdigest()[:16] != line["key_id"]:
            return f"{what} names a key that is not in the bundle"
        is_good = is_signed(public, bytes.fromhex(line["signature"]), text.encode())
        return "" if is_good else f"{what} was changed: its signature does not fit"

    def finish(self) -> None:
        what = self.what_is_open()
        if what and (self.has_ended or self.about["is_imported"]):
            self.lacks(f"{what}, and the record does not go on")
        elif what:
            self.notes.append(f"in progress: {what}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check a proof bundle.")
    parser.add_argument("path", nargs="?", default=str(Path(__file__).parent))
    parser.add_argument("--key", type=bytes.fromhex, help="the public key you trust")
    options = parser.parse_args(arguments)
    path = Path(options.path)
    try:
        folder: Any = path if path.is_dir() else zipfile.Path(path)
        trace, proof = ((folder / f"{n}.jsonl").open("rb") for n in ("trace", "proof"))
        with trace, proof:
            bundle = Bundle(trace, proof, options.key)
            bundle.check()
    except Exception as error:
        sys.stdout.write(f"unreadable: {type(error).__name__}: {error}\n")
        return UNREADABLE
    about, tampered, incomplete = bundle.about, bundle.tampered, bundle.incomplete
    out = [f"record {about['trace']}: {bundle.seq} events, head {bundle.head.hex()}"]
    out += [f"intact: {'no: ' + tampered if tampered else 'yes'}"]
    out += [f"complete: {'no: ' + incomplete if incomplete else 'yes'}"]
    out += [f"note: {note}" for note in bundle.notes]
    out += [f"public key {k}: {v}" for k, v in about["public_keys"].items()]
    sys.stdout.write("\n".join(out) + "\n")
    return TAMPERED if tampered else INCOMPLETE if incomplete else GOOD


if __name__ == "__main__":
    sys.exit(main())
