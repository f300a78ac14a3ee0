"""examples/emails, as its page says."""

import re
from email import message_from_bytes

from corvo_sdk import Client
from tests.examples.conftest import Start


def test_mail_is_tried_again_or_given_up_as_the_mail_server_says(
    walk: Start, client: Client
) -> None:
    """Greylisted: out in the second attempt, once. No such mailbox: dead after the first."""
    page = walk("emails", "2525")
    printed = page.rest()[-1]
    found = re.search(r"ada@example\.com: <(job_\w+)@example.com> went out in attempt 2", printed)
    assert found, printed
    inbox = [message_from_bytes(path.read_bytes()) for path in page.folder.glob("inbox/*")]
    assert [(mail["To"], mail["Message-ID"]) for mail in inbox] == [
        ("ada@example.com", f"<{found[1]}@example.com>")
    ]
    assert "451" in client.get_job(found[1]).errors[0].error
    given_up = re.search(r"nobody@example\.com: given up, (job_\w+) is dead: 550", printed)
    assert given_up, printed
    assert client.get_job(given_up[1]).attempt == 1
