#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Reads a TensorBoard event file by the description of its format alone, and prints an event a line: its step, then
`version TEXT`, `start` or `TAG=VALUE` for each scalar. A record that is cut off at the end is a line `half record`
with exit code 3; a wrong checksum or a field of another kind ends with exit code 1 and the record's offset.

A record is: length (8 bytes, little-endian), its masked CRC-32C (4), the data, the data's masked CRC-32C (4).
"""
import struct
import sys


def crc32c(data):
    """Bit by bit, with the reflected polynomial of RFC 3720."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def check(data, stored, what):
    crc = crc32c(data)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    if masked != stored:
        sys.exit(f"{what}: checksum {stored:#010x} where {masked:#010x} belongs")


def records(content):
    at = 0
    while at < len(content):
        if len(content) - at < 12:
            yield None
            return
        length, length_crc = struct.unpack_from("<QI", content, at)
        check(content[at:at + 8], length_crc, f"the length at byte {at}")
        if len(content) - at < 16 + length:
            yield None
            return
        data = content[at + 12:at + 12 + length]
        check(data, struct.unpack_from("<I", content, at + 12 + length)[0], f"the data at byte {at + 12}")
        yield data
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) for each field: an int, a float of 8 or 4 bytes, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            sys.exit(f"field {key >> 3} is of the unknown kind {kind}")
        yield key >> 3, value


def describe(event):
    step, words = 0, []
    for number, value in fields(event):
        if number == 1:
            if not 1e9 < value < 1e11:
                sys.exit(f"the wall time {value} is not of this century")
        elif number == 2:
            step = value
        elif number == 3:
            words.append(f"version {value.decode()}")
        elif number == 5:
            for _, scalar in fields(value):
                parts = dict(fields(scalar))
                words.append(f"{parts[1].decode()}={parts[2]:.9g}")
        elif number == 7:
            words.append({1: "start"}[dict(fields(value))[1]])
        else:
            sys.exit(f"an event has the unknown field {number}")
    return f"{step} " + " ".join(words)


with open(sys.argv[1], "rb") as file:
    for record in records(file.read()):
        if record is None:
            print("half record")
            sys.exit(3)
        print(describe(record))
