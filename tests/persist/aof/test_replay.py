"""Replaying a file: what is torn, what is damage, what is foreign."""

from __future__ import annotations

import zlib

import pytest

from penstock.engine.execute import TABLE, Engine
from penstock.errors import CorruptData
from penstock.persist.aof.batch import encode_batch
from penstock.persist.aof.replay import Replay, Torn
from tests.support.disk.fake_disk import FakeSource
from tests.support.engine.effects import Recorder
from tests.support.engine.engine_state import engine_state

FIRST = encode_batch(b"", 0, 0)


def words(line: str) -> bytes:
    pieces = line.split()
    found = b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in pieces)
    return b"*%d\r\n" % len(pieces) + found


def batch(line: str, at: int, synced: int = 0) -> bytes:
    data = words(line)
    return encode_batch(data, synced, at) + data


def with_value(key: str, value: bytes) -> bytes:
    return b"*3\r\n$3\r\nSET\r\n$1\r\n%s\r\n$%d\r\n%s\r\n" % (key.encode(), len(value), value)


def read(data: bytes) -> list[str]:
    """The data after a file was replayed."""
    engine = Engine()
    Replay(engine, TABLE.values()).run(FakeSource(data), "f")
    return engine_state(engine)


def torn_at(data: bytes) -> int:
    with pytest.raises(Torn) as caught:
        read(data)
    return caught.value.offset


def damage(data: bytes) -> str:
    with pytest.raises(CorruptData) as caught:
        read(data)
    assert str(caught.value).startswith("f: ")
    return str(caught.value)


A = batch("SET a 1", len(FIRST))
B = batch("SET b 2", len(FIRST + A))
BEHIND = len(FIRST + A + B)
STATE_A = ["0 'a'", "  string '1'"]


def test_batches_and_plain_commands_are_replayed_in_order() -> None:
    data = FIRST + A + words("SET a 3") + b"#TS:17\r\n"
    data += batch("INCR a", len(data)) + words("SELECT 2") + words("SET c 1")
    assert read(data) == ["0 'a'", "  string '4'", "2 'c'", "  string '1'"]
    assert read(b"") == read(FIRST) == []


def test_a_transaction_is_replayed_whole_or_is_torn() -> None:
    begun = words("SET z 1") + words("MULTI") + words("SET a 1")
    assert len(read(begun + words("EXEC"))) == 4
    assert torn_at(begun) == len(words("SET z 1"))
    assert torn_at(begun + words("EXEC")[:-1]) == len(words("SET z 1"))


@pytest.mark.parametrize("cut", range(1, len(B)))
def test_a_file_that_ends_within_its_last_batch_is_torn_there(cut: int) -> None:
    assert torn_at(FIRST + A + B[:cut]) == len(FIRST + A)


def test_a_hole_before_a_valid_batch_is_damage_even_if_it_was_not_synced() -> None:
    """It was cut off together with everything after it, as if nothing of it had been acknowledged."""
    for hole in range(1, len(B)):
        data = FIRST + A + bytes(hole) + B[hole:] + batch("SET c 3", BEHIND)
        assert "1 sound batches follow it" in damage(data)


def test_a_hole_with_no_valid_batch_after_it_is_torn() -> None:
    for hole in range(1, len(B)):
        assert torn_at(FIRST + A + bytes(hole) + B[hole:]) == len(FIRST + A)


def test_a_hole_in_synced_bytes_is_damage() -> None:
    behind = batch("SET c 3", BEHIND, synced=BEHIND)
    assert "byte 0x00" in damage(FIRST + A + bytes(9) + B[9:] + behind)


def test_a_file_with_only_its_first_line_intact_is_torn() -> None:
    """The first block of a new increment was lost but not the second: it was refused as damage."""
    assert torn_at(FIRST + bytes(600) + A[20:]) == len(FIRST)


def test_a_line_that_ends_in_zeros_is_torn() -> None:
    """A block ended inside the line and the next blocks were lost: it was refused as damage."""
    for zeros in (10, 1023, 1024, 5000):
        assert torn_at(FIRST + A + B[:9] + bytes(zeros) + b"more") == len(FIRST + A)


def test_a_line_of_a_later_version_is_refused_and_not_cut_off() -> None:
    """The rest of the file would have been cut off."""
    later = b"#PSCRC:2" + A[len(b"#PSCRC:1") :]
    assert "later version" in damage(FIRST + later)


def test_a_damaged_line_of_a_batch_is_not_skipped_as_an_annotation() -> None:
    """The commands after it would be replayed without a checksum."""
    damaged = b"#QSCRC" + B[6:]
    assert torn_at(FIRST + A + damaged) == len(FIRST + A)
    vouched = batch("SET c 3", BEHIND, synced=BEHIND)
    assert "nobody writes" in damage(FIRST + A + damaged + vouched)


def test_a_batch_inside_a_value_does_not_turn_a_torn_tail_into_damage() -> None:
    data = with_value("k", encode_batch(b"", 99999999, 0))
    assert torn_at(FIRST + encode_batch(data, 0, len(FIRST)) + data[:-1]) == len(FIRST)


def planted(place: int) -> tuple[bytes, bytes, int]:
    """A value that contains a valid batch for some offset, and the offset of that value.

    It claims that more was synced than the offset of the batch around it.
    """
    body = words("SET planted 1")
    value = encode_batch(body, len(FIRST) + 1, place) + body
    data = with_value("k", value)
    line = encode_batch(data, 0, len(FIRST))
    return line, data, (FIRST + line + data).index(value)


def test_a_planted_line_counts_only_at_its_exact_offset() -> None:
    """Its claim turned a torn end into damage, and the server did not start."""
    _, _, place = planted(0)
    for guess in (*range(place), *range(place + 1, place + 100)):
        line, data, _ = planted(guess)
        whole = FIRST + line + data
        last = batch("SET b 2", len(whole))
        assert "0 'planted'" not in read(whole + last)
        assert torn_at(whole + last[:-1]) == len(whole)
        assert torn_at(FIRST + line + b"?" + data[1:]) == len(FIRST)
        assert torn_at(FIRST + bytes(len(line)) + data) == len(FIRST)
    # docs/decisions/0005 accepts that it counts at its exact offset.
    line, data, _ = planted(place)
    assert "byte 0x00" in damage(FIRST + bytes(len(line)) + data)


def test_a_planted_line_inside_a_valid_batch_is_a_value() -> None:
    _, _, place = planted(0)
    line, data, _ = planted(place)
    assert "0 'planted'" not in read(FIRST + line + data)
    assert torn_at(FIRST + line + b"?" + data[1:]) == len(FIRST)
    assert torn_at(FIRST + line + data[:-1]) == len(FIRST)


def test_a_batch_at_another_offset_is_not_replayed() -> None:
    """A block that was written twice, or two blocks that were swapped."""
    end = encode_batch(b"", BEHIND, BEHIND)
    for moved in (FIRST + A + A, FIRST + B + A, A, FIRST + FIRST + A):
        assert torn_at(moved) in (0, len(FIRST), len(FIRST + A))
    assert "should vouch" in damage(FIRST + A + A + end)
    assert "should vouch" in damage(FIRST + B + A + end)


def test_a_changed_digit_of_what_was_synced_is_noticed() -> None:
    synced = len(FIRST + A)
    last = batch("SET b 2", synced, synced)
    place = last.index(b":%d:" % synced) + 1
    for digit in b"0123456789":
        changed = last[:place] + bytes([digit]) + last[place + 1 :]
        if changed != last:
            assert torn_at(FIRST + A + changed) == synced
            end = encode_batch(b"", synced + len(last), synced + len(last))
            assert "should vouch" in damage(FIRST + A + changed + end)


@pytest.mark.parametrize("letter", range(len(b"#PSCRC:")))
def test_a_changed_letter_of_a_line_is_noticed_and_nothing_after_it_is_replayed(
    letter: int,
) -> None:
    """The first line looked like a foreign annotation and was skipped."""
    sound = FIRST + A + B
    base = batch("SET a 1", 0)  # a base of commands begins with commands
    for mask in range(1, 256):
        for data, start in ((sound, 0), (sound, len(FIRST)), (sound, len(FIRST + A)), (base, 0)):
            changed = bytearray(data)
            changed[start + letter] ^= mask
            engine = Engine()
            replay = Replay(engine, TABLE.values())
            with pytest.raises((Torn, CorruptData)):
                replay.run(FakeSource(bytes(changed)), "f")
            assert replay.unvouched == 0
            assert replay.commands == (start == len(FIRST + A))


def test_foreign_annotations_are_skipped_before_plain_commands() -> None:
    assert read(b"# a remark\r\n" + words("SET a 1")) == STATE_A


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (words("SELECT 16"), "there are 16 databases"),
        (words("SELECT " + "9" * 5000), "there are 16 databases"),
        (words("NOSUCH a"), "unknown command"),
        (words("SET a"), "wrong number"),
        (words("SET a 1") + words("LPUSH a 1"), "WRONGTYPE"),
        (words("EXEC"), "EXEC without MULTI"),
        (words("MULTI") + words("MULTI"), "MULTI within MULTI"),
        (b"PING\r\n", "where a command should begin"),
        (b"*0\r\n" + words("SET a 1"), "not a command"),
        (b"*1\r\n:1\r\n" + words("SET a 1"), "expected '$'"),
        (encode_batch(words("SET a 1")[:-3], 0, 0) + words("SET a 1")[:-3], "checksum is right"),
        (encode_batch(words("MULTI"), 0, 0) + words("MULTI"), "within a transaction"),
    ],
)
def test_commands_that_cannot_be_replayed_are_refused(data: bytes, text: str) -> None:
    assert text in damage(data)


def test_a_batch_that_claims_to_be_endless_takes_no_memory() -> None:
    line = b"#PSCRC:1:999999999999999999:00000000:0:"
    own = zlib.crc32(b"%d:%s" % (len(FIRST), line))
    assert torn_at(FIRST + line + b"%08x\r\n" % own + A) == len(FIRST)


def test_zeros_to_the_end_are_torn_in_a_plain_file_too() -> None:
    plain = words("SET a 1")
    assert torn_at(plain + bytes(100)) == len(plain)
    assert "0x00" in damage(plain + bytes(100) + plain)


def test_a_name_recorded_again_after_it_had_expired_is_replayed() -> None:
    """A replay has no clock, so it still knows the name that the server had forgotten."""
    recorder = Recorder("8.6")
    first = recorder.ask("XADD s IDMP p a * k v")
    recorder.clock.at_ms += 200_000
    second = recorder.ask("XADD s IDMP q b * k v")
    assert recorder.ask(f"XIDMPRECORD s p a {second.decode()}") == "OK"
    assert first != second
    assert f"'p' 'a' is {second.decode()}" in "".join(read(recorder.take()))


def test_entries_read_of_a_log_are_taken_as_they_are() -> None:
    """Redis lowers them to the number of entries added. Our logs have the lowered number already."""
    state = read(words("XADD s 1-0 k v") + words("XGROUP CREATE s g 1-0 ENTRIESREAD 5"))
    assert "  group 'g' last=1-0 read=5" in state
    recorder = Recorder("8.6")
    recorder.ask("XADD s 1-0 k v")
    recorder.ask("XGROUP CREATE s g 1-0 ENTRIESREAD 5")
    assert "  group 'g' last=1-0 read=1" in read(recorder.take())
