"""Files as they are uploaded: a stream of bytes with a name."""

import io


def file(content, name="calls.csv"):
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    stream.name = name
    return stream
