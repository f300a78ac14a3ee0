"""python enqueue.py FOLDER: an album of the pictures in FOLDER; painted first where it is empty."""

import sys
from pathlib import Path

from jobs import app, make_thumbnail, write_index
from picture import Picture, write

pictures = Path(sys.argv[1]).resolve()
pictures.mkdir(exist_ok=True)
if not any(pictures.iterdir()):
    for blue in range(0, 256, 32):
        row = [
            bytes(value for x in range(320) for value in (x * 255 // 320, y, blue))
            for y in range(240)
        ]
        write(pictures / f"blue-{blue:03}.png", Picture(320, 240, row))
    (pictures / "broken.png").write_bytes(b"not a picture")

thumbnails = pictures.parent / "thumbnails"
thumbnails.mkdir(exist_ok=True)
batch = app.enqueue_batch(
    [
        make_thumbnail.call(str(path), str(thumbnails / path.name))
        for path in sorted(pictures.glob("*.png"))
    ],
    callback=write_index.call(str(thumbnails)),
)
for job in batch.jobs:
    job.wait(timeout="1m")

# The callback is a job as well; the batch knows its id.
callback_id = batch.refresh().callback_job_id
assert callback_id is not None
callback = app.client.wait(callback_id, timeout=30)
assert callback is not None
print(f"{callback.result}: {thumbnails / 'index.html'}")
