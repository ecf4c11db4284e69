"""Eval sets in files: in Greenroom's own shape or another tool's, recognised by content."""

from greenroom.cases.files.library import EvalSets
from greenroom.cases.files.load import problems, read_evalset
from greenroom.cases.files.save import write_evalset
from greenroom.cases.files.schema import evalset_schema
from greenroom.cases.files.shapes import Shape, register_shape, shape_names

__all__ = [
    "EvalSets",
    "Shape",
    "evalset_schema",
    "problems",
    "read_evalset",
    "register_shape",
    "shape_names",
    "write_evalset",
]
