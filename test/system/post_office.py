"""A mail server on the loopback, which takes mails and keeps them, or does as a test wants."""
import asyncio
import email
import email.policy
import re
import subprocess
import ssl

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from stack import PATIENCE_S, free_port


class Mail:
    def __init__(self, envelope, session):
        self.sender, self.receivers, self.raw, self.is_encrypted = envelope.mail_from, envelope.rcpt_tos, envelope.content, session.ssl is not None
        self.message = email.message_from_bytes(self.raw, policy=email.policy.default)
        self.text = self.message.get_content()
        self.subject = self.message['Subject']

    @property
    def ticket(self):
        (ticket,) = re.findall(r'(?<![\w-])[\w-]{43}(?![\w-])', self.text)
        return ticket


class Office:
    """`answer`: what it replies to a mail; `hang`, `close`: it does that instead, at the receiver.  `meanwhile`: before the reply, once."""

    def __init__(self, **more):
        self.mails, self.logins, self.tried = [], [], 0
        self.answer, self.receiver, self.hang, self.close, self.meanwhile = '250 OK', None, False, False, None
        self.controller = Controller(self, hostname='127.0.0.1', port=free_port(), ready_timeout=PATIENCE_S, **{**more, **({'authenticator': self.log_in} if more else {})})
        self.controller.start()
        self.url = f'smtp://127.0.0.1:{self.controller.port}'

    def stop(self):
        self.controller.stop()

    async def handle_RCPT(self, server, session, envelope, address, options):
        self.tried += 1
        if self.close:
            server.transport.close()
        if self.hang:
            await asyncio.sleep(20)
        if self.receiver:
            return self.receiver
        envelope.rcpt_tos.append(address)
        return '250 OK'

    async def handle_DATA(self, server, session, envelope):
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        if self.answer.startswith('250'):
            self.mails.append(Mail(envelope, session))
        return self.answer

    def log_in(self, server, session, envelope, mechanism, data):
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b'secret', handled=False)

    def take(self):
        """The only mail since the last call."""
        (mail,) = self.mails
        self.mails.clear()
        return mail


def certificate(home):
    """Of 127.0.0.1, in mail.pem; returns a server's context."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj',
                    '/CN=mail', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', home / 'mail.key', '-out', home / 'mail.pem'],
                   check=True, stderr=subprocess.DEVNULL)
    (home / 'mail.pem').chmod(0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / 'mail.pem', home / 'mail.key')
    return context
