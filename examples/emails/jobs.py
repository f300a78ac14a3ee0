"""Mail that is tried again while the mail server asks for it, and given up when it says never."""

import os
import smtplib
from email.message import EmailMessage

from corvo_sdk import Context, Corvo, Discard

app = Corvo("emails")


@app.task(
    queue="emails", retries=8, backoff="exponential", base_delay="1s", max_delay="1h", timeout="30s"
)
def send_email(ctx: Context, to: str, subject: str, body: str) -> str:
    """Send one message; gives its Message-ID."""
    message = EmailMessage()
    message["From"] = "shop@example.com"
    message["To"] = to
    message["Subject"] = subject
    # Delivery is at least once. The id is the same in every attempt, so that a message that was
    # sent twice, because the worker died before it could say so, is recognised as one.
    message["Message-ID"] = f"<{ctx.job_id}@example.com>"
    message.set_content(body)
    port = int(os.environ.get("SMTP_PORT", "2525"))
    try:
        with smtplib.SMTP("127.0.0.1", port, timeout=10) as server:
            server.send_message(message)
    except smtplib.SMTPRecipientsRefused as refused:
        code, reason = refused.recipients[to]
        if code >= 500:  # for good, by RFC 5321
            raise Discard(f"{code} {reason.decode()}") from refused
        raise  # for now: any exception is a failed attempt, and the back-off begins
    ctx.log.info("sent to %s", to)
    return str(message["Message-ID"])
