"""The units of systemd: what they must have, and that systemd understands them."""
import re
import shutil
import subprocess

import pytest

from stack import BUILD

pytestmark = pytest.mark.plain

UNITS = ['stampd', 'stamp-queue']


def read(name):
    """{section: {directive: values}}: a directive may be given several times."""
    sections, section = {}, None
    for line in (BUILD / f'doc/{name}.service').read_text().splitlines():
        if re.fullmatch(r'\[\w+\]', line):
            section = sections.setdefault(line[1:-1], {})
        elif line and not line.startswith('#'):
            directive, _, value = line.partition('=')
            section.setdefault(directive, []).append(value)
    return sections


@pytest.mark.parametrize('name', UNITS)
def test_a_unit_restarts_limits_and_closes_in(name):
    unit = read(name)
    service = unit['Service']
    assert unit['Unit']['StartLimitIntervalSec'] == ['0'], 'systemd never gives up'
    assert service['Restart'] == ['on-failure'] and service['RestartSec'] == ['1']
    assert service['LimitCORE'] == ['0'], 'keys and contents stay out of core dumps'
    assert service['MemoryMax'] and service['TasksMax'] and service['OOMPolicy'] == ['continue']
    assert service['User'] == ['stampd'] and service['CapabilityBoundingSet'] == [''] and service['NoNewPrivileges'] == ['yes']
    assert {'~@privileged', '@system-service'} <= set(service['SystemCallFilter'])
    assert service['ProtectSystem'] == ['strict'] and service['ProtectProc'] == ['invisible']
    assert unit['Install']['WantedBy'] == ['multi-user.target']


def test_the_server_keeps_its_sockets_and_says_when_it_is_ready():
    service = read('stampd')['Service']
    assert service['Type'] == ['notify'] and service['NotifyAccess'] == ['all'] and int(service['FileDescriptorStoreMax'][0]) >= 144
    assert service['ExecReload'] == ['/bin/kill -HUP $MAINPID'] and service['KillMode'] == ['mixed']


def test_the_receiver_of_the_log_is_closed_in():
    service = read('stampd-backup@')['Service']
    assert service['Restart'] == ['always'] and service['UMask'] == ['0077'] and service['LimitCORE'] == ['0'] and service['User'] == ['postgres']
    assert service['CapabilityBoundingSet'] == [''] and service['NoNewPrivileges'] == ['yes']
    assert service['ProtectSystem'] == ['strict'] and service['ReadWritePaths'] == ['%f']
    assert read('stampd-backup@')['Unit']['StartLimitIntervalSec'] == ['0'] and service['MemoryMax'] and service['TasksMax']


def test_what_applies_schemas_writes_no_files():
    service = read('stampd-schema')['Service']
    assert service['Restart'] == ['always'] and service['LimitCORE'] == ['0'] and service['MemoryMax'] and service['TasksMax']
    assert service['CapabilityBoundingSet'] == ['CAP_DAC_READ_SEARCH'] and service['NoNewPrivileges'] == ['yes'] and service['ProtectSystem'] == ['strict']
    assert 'ReadWritePaths' not in service and read('stampd-schema')['Unit']['StartLimitIntervalSec'] == ['0']


@pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='there is no systemd-analyze')
@pytest.mark.parametrize('name', [*UNITS, 'stampd-backup@', 'stampd-schema'])
def test_systemd_understands_it(name, tmp_path):
    unit = tmp_path / (f'{name}.service' if not name.endswith('@') else f'{name}srv-backup.service')
    text = (BUILD / f'doc/{name}.service').read_text()
    unit.write_text(re.sub(r'^ExecStart=\S+', 'ExecStart=/bin/true', text, flags=re.M).replace('User=stampd', 'User=root').replace('Group=stampd', 'Group=root'))
    done = subprocess.run(['systemd-analyze', 'verify', '--man=no', '--recursive-errors=no', unit], capture_output=True, text=True, timeout=60)
    assert not [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line], done.stderr
