"""The TLS context both adapters use."""

import ssl

from corvo_sdk.transport.ports import Tls


def context_of(tls: Tls) -> ssl.SSLContext:
    """Build a context; a file that can not be read is an OSError that names it."""
    context = ssl.create_default_context(cafile=tls.ca_file)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate_file is not None:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    return context
