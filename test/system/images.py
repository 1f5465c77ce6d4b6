"""Images for tests, made without a library, and what a test must know of the thumbnails that the server makes of them."""
import struct
import zlib


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def png(width, height, colour=(200, 40, 40), interlaced=False):
    """One colour, so that large images have few bytes."""
    row = b'\0' + bytes(colour) * width
    packer = zlib.compressobj(9)
    data = b''.join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, interlaced)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', data) + chunk(b'IEND', b'')


def bomb(width, height):
    """A PNG of zeros, one bit a pixel: a few hundred kilobytes whatever it promises."""
    packer = zlib.compressobj(9)
    rows = bytes((width + 7) // 8 + 1) * 100
    data = b''.join(packer.compress(rows) for _ in range(height // 100)) + packer.flush()
    head = struct.pack('>IIBBBBB', width, height, 1, 0, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', data) + chunk(b'IEND', b'')


def gif(width, height):
    """One colour; the codes of LZW are written one by one, each after a clear."""
    codes, bits, out = [4, 0] * (width * height) + [5], 0, bytearray()
    value = 0
    for code in codes:
        value |= code << bits
        bits += 3
        while bits >= 8:
            out.append(value & 255)
            value >>= 8
            bits -= 8
    out.append(value & 255)
    blocks = b''.join(bytes([len(out[i:i + 255])]) + bytes(out[i:i + 255]) for i in range(0, len(out), 255))
    return (b'GIF89a' + struct.pack('<HHBBB', width, height, 0x80, 0, 0) + bytes([10, 200, 10, 0, 0, 0])
            + b',' + struct.pack('<HHHHB', 0, 0, width, height, 0) + b'\x02' + blocks + b'\0;')


WEBP = b'WEBPVP8'  # what each has near its beginning: longer than what random bytes may have by chance


def webp_size(content):
    """(width, height) of a WebP, from its header."""
    assert content[:4] == b'RIFF' and content[8:12] == b'WEBP' and struct.unpack('<I', content[4:8])[0] + 8 == len(content)
    kind, data = content[12:16], content[20:]
    if kind == b'VP8X':
        return 1 + int.from_bytes(data[4:7], 'little'), 1 + int.from_bytes(data[7:10], 'little')
    if kind == b'VP8L':
        bits = int.from_bytes(data[1:5], 'little')
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    assert kind == b'VP8 '
    width, height = struct.unpack('<HH', data[6:10])
    return width & 0x3FFF, height & 0x3FFF
