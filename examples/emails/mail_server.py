"""python mail_server.py PORT: a mail server for this example; mail ends up in ./inbox.

It greylists: an address it does not know is refused once, for now, as many real servers do. Mail to
nobody@... is refused for good.
"""

import asyncio
import re
import sys
from email import message_from_bytes
from pathlib import Path

INBOX = Path("inbox")
seen: set[str] = set()


def judge(address: str) -> str:
    if address.startswith("nobody@"):
        return "550 5.1.1 there is no such mailbox"
    if address not in seen:
        seen.add(address)
        return "451 4.7.1 greylisted, come back later"
    return "250 ok"


def keep(lines: list[bytes]) -> None:
    INBOX.mkdir(exist_ok=True)
    document = b"".join(line.removeprefix(b".") for line in lines)
    name = re.sub(r"\W", "", str(message_from_bytes(document)["Message-ID"]).partition("@")[0])
    (INBOX / f"{name}.eml").write_bytes(document)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak as much of RFC 5321 as one message needs."""
    writer.write(b"220 example\r\n")
    while line := await reader.readline():
        verb, _, rest = line.decode().strip().partition(" ")
        match verb.upper():
            case "RCPT":
                found = re.search(r"<(.+)>", rest)
                answer = judge(found[1]) if found else "501 no address"
            case "DATA":
                writer.write(b"354 go on, a dot ends it\r\n")
                lines: list[bytes] = []
                while (part := await reader.readline()) not in {b".\r\n", b""}:
                    lines.append(part)
                keep(lines)
                answer = "250 kept"
            case "QUIT":
                answer = "221 bye"
            case _:
                answer = "250 ok"
        writer.write(f"{answer}\r\n".encode())
        await writer.drain()
        if answer.startswith("221"):
            break
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
