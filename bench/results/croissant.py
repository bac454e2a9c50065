"""The head of Croissant files: data sets described for machines.

Source: MLCommons, Croissant 1.0 and its RAI vocabulary for responsible AI, docs.mlcommons.org/croissant.
"""

from __future__ import annotations

__figures__ = False

import json

from pydantic import JsonValue

CONTEXT = """{
 "@language": "en", "@vocab": "https://schema.org/", "citeAs": "cr:citeAs", "column": "cr:column",
 "conformsTo": "dct:conformsTo", "cr": "http://mlcommons.org/croissant/", "data": {"@id": "cr:data", "@type": "@json"},
 "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "dct": "http://purl.org/dc/terms/",
 "equivalentProperty": "cr:equivalentProperty",
 "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract", "field": "cr:field",
 "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty", "fileSet": "cr:fileSet", "format": "cr:format",
 "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath", "key": "cr:key",
 "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path", "rai": "http://mlcommons.org/croissant/RAI/",
 "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
 "replace": "cr:replace", "samplingRate": "cr:samplingRate", "sc": "https://schema.org/",
 "separator": "cr:separator", "source": "cr:source",
 "subField": "cr:subField", "transform": "cr:transform"
}"""
"""The standard's own context, and the prefix of the RAI fields."""


def head() -> dict[str, JsonValue]:
    """Context, type and versions, with which a file begins."""
    return {
        "@context": json.loads(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
    }
