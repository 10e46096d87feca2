# SPDX-License-Identifier: Apache-2.0
"""The capture: read by tshark, by capinfos, and for the bytes of the frames by a few lines of Python; the ICRC computed anew."""
import gzip
import struct
import subprocess
import zlib

FIELDS = ("frame.time_epoch", "frame.interface_name", "frame.len", "frame.packet_flags_direction", "frame.packet_id", "frame.comment",
          "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp", "infiniband.bth.padcnt", "infiniband.bth.a",
          "infiniband.aeth.syndrome", "infiniband.aeth.syndrome.opcode", "infiniband.aeth.syndrome.error_code", "infiniband.aeth.msn",
          "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen", "infiniband.atomiceth.swapdt",
          "infiniband.deth.q_key", "infiniband.deth.srcqp", "infiniband.immdt", "infiniband.invariant.crc", "ip.src", "ip.dst",
          "udp.dstport")
# Payloads may look like other protocols on top of InfiniBand by chance.
GUESSES = ("rpcrdma_infiniband", "eth_over_ib", "smb_direct_infiniband", "fc_infiniband", "nvme_rdma", "smcr_infiniband",
           "mellanox_eoib", "lnet_ib", "iser_infiniband")
ETH, IPV4, UDP, BTH = 14, 20, 8, 12


def command(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines()


def tshark(path, *more):
    guesses = [w for g in GUESSES for w in ("--disable-heuristic", g)]
    return command("tshark", "-r", path, *guesses, *more)


def packets_of(path):
    """(interface, ns, captured bytes, original length) of each frame."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        data = file.read()
    interfaces, at = 0, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0 and struct.unpack_from("<I", data, at + length - 4)[0] == length, "lengths of a block differ"
        if kind == 1:
            interfaces += 1
        if kind == 6:
            number, high, low, captured, original = struct.unpack_from("<IIIII", data, at + 8)
            assert number < interfaces, "the interface is not described yet"
            yield number, high << 32 | low, data[at + 28:at + 28 + captured], original
        at += length
    assert at == len(data)


def icrc(frame):
    """Of a RoCEv2 frame over IPv4 (IBA annex A17.3.3), as it stands in its last four bytes."""
    covered = bytearray(frame[ETH:-4])
    for masked in (1, 8, 10, 11, IPV4 + 6, IPV4 + 7, IPV4 + UDP + 4):  # ToS, TTL, checksums, reserved byte of the BTH
        covered[masked] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + covered))


class Capture:
    def __init__(self, path):
        assert tshark(path, "-Y", "_ws.malformed") == [], "malformed frames"
        assert not any("Malformed" in line for line in tshark(path, "-q", "-z", "expert")), "malformed frames"
        info = command("capinfos", path)
        assert any("File timestamp precision:" in line and "nanoseconds (9)" in line for line in info), info
        words = [w for name in FIELDS for w in ("-e", name)]
        lines = tshark(path, "-T", "fields", "-E", "separator=|", *words)
        self.frames = [dict(zip(FIELDS, line.split("|"))) for line in lines]
        if self.frames:
            assert any("Strict time order:" in line and "True" in line for line in info), info
        raw = list(packets_of(path))
        assert len(raw) == len(self.frames), "tshark finds another number of frames"
        for frame, (_, time, data, length) in zip(self.frames, raw):
            frame["ns"], frame["bytes"] = time, data
            seconds, fraction = frame["frame.time_epoch"].split(".")
            assert int(seconds) * 10**9 + int(fraction) == time
            assert int(frame["frame.len"]) == length
            if len(data) == length:
                self._headers(frame, data)

    @staticmethod
    def _headers(frame, data):
        """What tshark prints is what the bytes say."""
        def number(name):
            return int(frame["infiniband." + name].split(",")[0], 0)
        assert frame["udp.dstport"] == "4791"
        bth = ETH + IPV4 + UDP
        assert number("bth.opcode") == data[bth]
        assert number("bth.destqp") == int.from_bytes(data[bth + 5:bth + 8], "big")
        assert number("bth.psn") == int.from_bytes(data[bth + 9:bth + 12], "big")
        assert struct.unpack_from(">H", data, ETH + 2)[0] == len(data) - ETH, "length of the IP datagram"
        assert struct.unpack_from(">H", data, ETH + IPV4 + 4)[0] == len(data) - ETH - IPV4, "length of the UDP datagram"
        payload = len(data) - bth - BTH - 4 - number("bth.padcnt")
        opcode = number("bth.opcode")
        if opcode in (6, 10, 11, 12):  # WRITE First, Only, Only with Immediate; READ Request
            va, key, length = struct.unpack_from(">QII", data, bth + BTH)
            assert (number("reth.va"), number("reth.r_key"), number("reth.dmalen")) == (va, key, length)
            if opcode != 6:
                assert payload == 16 + {10: length, 11: 4 + length, 12: 0}[opcode], "bytes of a READ or WRITE"
        if opcode in (13, 15, 16, 17, 18):  # READ responses, ACK, ATOMIC ACK
            assert number("aeth.syndrome") == data[bth + BTH]
            assert number("aeth.msn") == int.from_bytes(data[bth + BTH + 1:bth + BTH + 4], "big")
        if opcode in (19, 20):
            assert number("atomiceth.swapdt") == struct.unpack_from(">Q", data, bth + BTH + 12)[0]
        if opcode in (100, 101):
            assert number("deth.q_key") == struct.unpack_from(">I", data, bth + BTH)[0]
            assert number("deth.srcqp") == struct.unpack_from(">I", data, bth + BTH + 4)[0] & 0xFFFFFF
        assert data[-4:].hex() == frame["infiniband.invariant.crc"][2:] == icrc(data).hex(), "ICRC"

    def kinds(self):
        """What the frames are: opcode, and of an AETH the kind of its syndrome and its error code."""
        out = set()
        for f in self.frames:
            out.add(f["infiniband.bth.opcode"])
            if f["infiniband.aeth.syndrome.opcode"]:
                code = f["infiniband.aeth.syndrome.error_code"] if f["infiniband.aeth.syndrome.opcode"] == "3" else ""
                out.add("/".join(filter(None, (f["infiniband.bth.opcode"], f["infiniband.aeth.syndrome.opcode"], code))))
        return out
