"""Files as they are uploaded: a stream of bytes with a name, or what the dashboard's chooser holds."""

import datetime
import io
import json


def file(content, name="calls.csv"):
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    stream.name = name
    return stream


def chosen(files):
    """Return files, pairs of a name and a text or bytes, as the dashboard's chooser holds them."""
    files = [(name, text if isinstance(text, bytes) else text.encode()) for name, text in files]
    same = {"type": "", "last_modified": datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)}
    return tuple({"name": name, "size": len(text), "content": memoryview(text)} | same for name, text in files)


def square(west, south, width=0.02, height=0.02):
    east, north = west + width, south + height
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def geojson(features):
    """Return the text of a GeoJSON file of features, pairs of properties and a geometry."""
    features = [{"type": "Feature", "properties": known, "geometry": shape} for known, shape in features]
    return json.dumps({"type": "FeatureCollection", "features": features})
