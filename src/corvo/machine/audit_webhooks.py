"""Invariants of webhooks: what is kept for one belongs to one that exists, and is counted."""

from collections import Counter

from corvo.keys import codec, space
from corvo.keys.codec import Meta
from corvo.keys.order import unpack_u64
from corvo.machine.picture import Picture, pairs
from corvo.model import limits
from corvo.model.webhook import Progress

_KIND = 3  # offset of the byte that tells webhook, progress, dead letter and log apart
_ID = 4
_ID_UNTIL = 20


def webhooks(picture: Picture) -> list[str]:
    """Each webhook has progress behind the machine's own, and as many dead letters as it says."""
    found: list[str] = []
    raw = picture.store.get(space.META)
    meta = codec.decode_meta(raw) if raw is not None else None
    names: dict[bytes, int] = {}
    progresses: dict[bytes, int] = {}
    letters: Counter[bytes] = Counter()
    lines: Counter[bytes] = Counter()
    tries: dict[bytes, int] = {}
    for key, value in pairs(picture.store, space.WEBHOOK):
        owner = key[1:_KIND] + key[_ID:_ID_UNTIL]
        match key[_KIND : _KIND + 1]:
            case b"h":
                webhook = codec.decode_webhook(value)
                names[owner] = webhook.version
                if key != space.webhook_key(webhook.ns, webhook.id):
                    found.append(f"webhook {webhook.id.hex()} lies under another name")
            case b"p":
                progress = codec.decode_progress(value)
                progresses[owner] = progress.letters
                tries[owner] = min(progress.tries, limits.WEBHOOK_TRIES_KEPT)
                found += _cursor(owner[2:].hex(), progress, meta)
            case b"l":
                lines[owner] += 1
                codec.decode_try(value)
            case _:
                letters[owner] += 1
                if codec.decode_dead_letter(value).seq != unpack_u64(key, len(key) - 8)[0]:
                    found.append(f"a dead letter of webhook {owner[2:].hex()} is misfiled")
    if sorted(names) != sorted(progresses):
        found.append("webhooks and their progress do not match")
    found += [
        f"dead letters of an unknown webhook {owner[2:].hex()}"
        for owner in letters
        if owner not in names
    ]
    if lines != Counter(tries):
        found.append("the delivery logs of webhooks do not have the lines they say")
    for owner, count in progresses.items():
        if letters[owner] != count or count > limits.WEBHOOK_LETTERS_MAX:
            found.append(
                f"webhook {owner[2:].hex()} has {letters[owner]} dead letters, not {count}"
            )
    return found


def _cursor(name: str, progress: Progress, meta: Meta | None) -> list[str]:
    found: list[str] = []
    if meta is None or progress.seq > meta.seq or progress.index > meta.index:
        found.append(f"webhook {name} is ahead of the events")
    done = progress.done
    if sorted(done) != done or (done and done[0] <= progress.seq):
        found.append(f"webhook {name} has done {done}")
    return found
