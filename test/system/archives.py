"""Archives of `stampctl export`, as tests look into them and alter them."""
import hashlib
import io
import json
import subprocess
import tarfile

from stack import run_program


def members(path):
    """{name: bytes} of an archive, in its order."""
    plain = subprocess.run(['zstd', '-dc', str(path)], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def write(path, files):
    """An archive of these members."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode='w', format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(subprocess.run(['zstd', '-q', '-c'], input=plain.getvalue(), stdout=subprocess.PIPE, check=True).stdout)


def documents(path):
    """{(class, id): line} of an archive."""
    lines = [json.loads(line) for name, data in members(path).items() if name.startswith('documents/') for line in data.splitlines()]
    found = {(line['c'], line['id']): line for line in lines}
    assert len(found) == len(lines) and list(found) == sorted(found, key=lambda name: (name[0].encode(), name[1].encode()))
    return found


def rows(stack, ns):
    """All rows of the documents of a namespace, zombies and tombstones included, as a set each."""
    return (set(stack.psql(ns, 'select class, id, version, ctime, dtime, v1, v2 from doc')),
            set(stack.psql(ns, 'select class, id, iclass, key, version, vop, content, raw from item')))


def verify(stack, path, *words, status=0):
    return run_program(stack.build / 'src/stampctl', 'verify', path, *words, status=status)


def rewrite(path, files):
    """An archive of these members with digests that are right again: what only somebody who wants to can do."""
    files = dict(files)
    digests = json.loads(files.pop('digests.json'))
    lines = [line for name, data in files.items() if name.startswith('documents/') for line in data.splitlines(keepends=True)]
    total = sum(int.from_bytes(hashlib.sha256(line).digest(), 'little') for line in lines) % 2 ** 256
    digests['members'] = [{'name': name, 'size': len(data), 'sha256': hashlib.sha256(data).hexdigest()} for name, data in files.items()]
    digests['sum'] = total.to_bytes(32, 'little').hex()
    write(path, {**files, 'digests.json': json.dumps(digests).encode()})
